//! spider: fetch, parse, links; pages are stored as files. Usage: URL FOLDER.

use spider::tokio;
use spider::website::Website;
use std::time::Instant;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (url, folder) = (arguments[1].clone(), arguments[2].clone());
    let mut website = Website::new(&url);
    website.configuration.respect_robots_txt = true;
    website.configuration.delay = 0;
    website.with_concurrency_limit(Some(64));
    website.with_limit(1_000_000);
    let mut pages = website.subscribe(100_000);
    let began = Instant::now();
    let storing = tokio::spawn(async move {
        let mut count = 0;
        while let Ok(page) = pages.recv().await {
            let html = page.get_html_bytes_u8();
            if page.status_code.is_success() && !html.is_empty() {
                count += 1;
                std::fs::write(format!("{folder}/{count}.html"), html).expect("a writable folder");
            }
        }
        count
    });
    website.crawl().await;
    website.unsubscribe();
    let count = storing.await.expect("the task that stores pages");
    let seconds = began.elapsed().as_secs_f64();
    println!("{{\"pages\": {count}, \"seconds\": {seconds}}}");
}
