"""English words: those that documentation uses for the same thing, and those that say little.

Questions say "stop" or "switch on" where an answer says "terminate" or "enable", and the static
model sees little in common. Other languages are compared by the model alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from forager.documents.search.score import stem

# one group per line; a word may be in several
_GROUPS = """
delete remove erase drop purge discard clear uninstall unset destroy
create make build generate new construct
start launch run boot startup spawn invoke execute begin
stop kill terminate shutdown abort cancel quit exit halt revoke interrupt
restart reload reboot
change modify edit alter update customize adjust
replace substitute swap override mock patch monkeypatch stub
show display print view output render
hide suppress mute silence ignore exclude omit skip disable
send transmit post publish push deliver emit
receive accept obtain fetch retrieve get
save store persist keep remember
load read open import
copy clone duplicate replicate
move migrate transfer relocate
backup dump archive snapshot export
restore recover undo revert rollback rescue reset
find search locate discover lookup
check verify validate ensure assert confirm
compare diff difference versus
limit restrict throttle quota maximum rate bound
forbid deny block reject disallow prevent ban refuse
allow permit grant enable authorize
login signin authenticate authentication auth credential
password secret credential passphrase token
encrypt secure security tls ssl https certificate
user account
fast quick speed performance optimize tune slow efficient faster
memory ram heap
cpu processor core
disk storage volume filesystem
folder directory path
error exception failure fault fail crash raise problem
retry again repeat reattempt
wait sleep delay pause timeout await
schedule periodic cron timer daily nightly recurring interval
parallel concurrent simultaneous thread concurrency
background daemon service async daemonize asynchronous
boot startup daemon service init systemd
lock mutex semaphore exclusive
log logging record journal
debug troubleshoot diagnose inspect trace
monitor watch observe status metric statistic
notify alert email mail notification
translate translation language locale internationalization localization
link url hyperlink href
picture image photo figure graphic icon
chart graph plot diagram draw
style look appearance theme css stylesheet layout
split divide separate partition chunk piece stream
join merge combine concatenate together
sort order arrange
filter select choose subset pick
convert transform cast parse
compress shrink zip gzip minify
upload attach multipart
install setup deploy deployment
upgrade update migrate migration
configure configuration setting option preference parameter
command cli shell terminal console
shortcut abbreviation alias shorten abbreviate keybinding
history previous earlier back
version release edition revision
example sample tutorial demo
plugin extension addon hook
proxy gateway balancer
server host machine
cache buffer memoize
transaction commit atomic
database sql
random shuffle
time date clock timestamp datetime
text string character
number integer float numeric
list array sequence vector
dictionary map hash associative
loop iterate repeat traverse
function method procedure routine subroutine
inherit subclass extend derive
argument parameter option flag
empty blank null missing none
duplicate unique distinct twice
custom own customize personal
permission access privilege right acl role
child subprocess fork
write author writing
several multiple many
program process application executable command
big large size huge length
often frequency count occurrence
tree hierarchy recursive nested parent
virus malware spam
mean meaning explain description
port listen bind address
wrong incorrect invalid bad
variable environment env
protect security safe attack vulnerability
"""

# words of questions that are rare in documentation and still say little about its subjects
_VAGUE = """
about again all already also always another any anyone anything around automatic automatically
available avoid become before begin being best better between both bring certain come common
completely current different differently directly do does done each easily easy either else
enough entire even every everything exact exactly first follow following full get give given go
good happen happens have help hundred important inside instead just keep kind last later leave
less let like little look lot make many matter mean mine more most much must name need never new
next no nothing now old one only ordinary other others out outside own part particular people
possible proper put real really reason regular regularly right same see several should show
simple simply single some someone something somewhere soon specific start still such sure take
tell ten than thing thousand three through time together too turn two use used useful using
various very want way well what when where which while whole why work works wrong year yet
"""


def _synonyms() -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _GROUPS.split("\n"):
        stems = frozenset(map(stem, line.split()))
        found.update((each, found.get(each, frozenset()) | stems) for each in stems)
    return found


_SYNONYMS = _synonyms()
_VAGUE_STEMS = frozenset(map(stem, _VAGUE.split()))


def synonyms(word: str) -> frozenset[str]:
    """The words, without their endings, that are used for a word in lower case."""
    return _SYNONYMS.get(stem(word), frozenset())


def is_vague(word: str) -> bool:
    """Whether a word in lower case says little about the subject of a question: "different"."""
    return stem(word) in _VAGUE_STEMS
