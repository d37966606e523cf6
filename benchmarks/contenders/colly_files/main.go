// Colly: fetch, parse, links; pages are stored as files. Usage: URL FOLDER.
package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
)

func main() {
	start, folder := os.Args[1], os.Args[2]
	address, err := url.Parse(start)
	check(err)
	collector := colly.NewCollector(colly.Async(true), colly.AllowedDomains(address.Host, address.Hostname()))
	collector.IgnoreRobotsTxt = false
	collector.MaxBodySize = 0
	check(collector.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 64}))
	var pages atomic.Int64
	collector.OnHTML("a[href]", func(link *colly.HTMLElement) {
		// Colly takes places of one page for pages
		if target, _, _ := strings.Cut(link.Attr("href"), "#"); target != "" {
			_ = link.Request.Visit(target) // an error: known, outside, or forbidden
		}
	})
	collector.OnResponse(func(response *colly.Response) {
		if strings.Contains(response.Headers.Get("Content-Type"), "html") {
			name := fmt.Sprintf("%d.html", pages.Add(1))
			check(os.WriteFile(filepath.Join(folder, name), response.Body, 0o600))
		}
	})
	began := time.Now()
	check(collector.Visit(start))
	collector.Wait()
	answer := map[string]any{"pages": pages.Load(), "seconds": time.Since(began).Seconds()}
	check(json.NewEncoder(os.Stdout).Encode(answer))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
