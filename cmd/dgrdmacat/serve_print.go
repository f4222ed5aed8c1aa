package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// printer writes what happened, one line each. It stops at the first error.
type printer struct {
	w    io.Writer
	json bool
	err  error
}

// happened is the object that --json prints for each entry of the journal.
type happened struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Peer    *peerName `json:"peer,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Error   string    `json:"error,omitempty"`
	Times   uint64    `json:"times,omitempty"`
	Size    int       `json:"size,omitempty"`
	Addr    *uint32   `json:"addr,omitempty"`
	Value   *uint32   `json:"value,omitempty"`
	Hex     string    `json:"hex,omitempty"`
	Skipped uint64    `json:"skipped,omitempty"`
}

type peerName struct {
	ID   dgrdma.EndpointID `json:"id"`
	Addr string            `json:"addr"`
}

func named(p dgrdma.PeerName) *peerName {
	if p == (dgrdma.PeerName{}) {
		return nil
	}
	return &peerName{p.ID, p.Addr.String()}
}

func (p *printer) print(list []entry) {
	var b strings.Builder
	for i := range list {
		e := &list[i]
		if p.json {
			p.encode(&b, e.object())
		} else {
			fmt.Fprintf(&b, "%s %s\n", e.at.Format("15:04:05.000000"), e.text())
		}
	}
	p.write(b.String())
}

func (p *printer) write(s string) {
	if p.err == nil && s != "" {
		_, p.err = io.WriteString(p.w, s)
	}
}

// failed returns why not everything was printed.
func (p *printer) failed() error {
	if p.err == nil {
		return nil
	}
	return untold{p.err}
}

// untold is why a server ends that cannot print what happens. A pipe that is closed is a failure here:
// peers may not know yet that nobody serves them any more.
type untold struct{ error }

func (u untold) Error() string { return "ended since nobody is told what happens: " + u.error.Error() }
func (u untold) Unwrap() error { return u.error }

func (p *printer) encode(b *strings.Builder, object any) {
	if err := json.NewEncoder(b).Encode(object); err != nil {
		panic("BUG: " + err.Error()) // plain structs
	}
}

func (e *entry) object() *happened {
	h := &happened{Time: e.at, Event: e.kind, Peer: named(e.peer), Reason: e.reason, Times: e.times, Size: e.size, Skipped: e.skipped}
	if e.err != nil {
		h.Error = e.err.Error()
	}
	if e.kind == "" {
		h.Event, h.Addr, h.Value, h.Hex = "value", &e.addr, &e.value, fmt.Sprintf("0x%08x", e.value)
	}
	return h
}

func (e *entry) text() string {
	because := ""
	if e.err != nil {
		because = ": " + e.err.Error()
	}
	switch e.kind {
	case "":
		skipped := ""
		if e.skipped > 0 {
			skipped = fmt.Sprintf(", %s before it not shown", count(e.skipped, "value"))
		}
		return fmt.Sprintf("0x%08x = 0x%08x (%d) by %v%s", e.addr, e.value, e.value, e.peer, skipped)
	case "refused":
		times := ""
		if e.times > 1 {
			times = fmt.Sprintf(" %d times", e.times)
		}
		if because == "" {
			because = refusedBecause[e.reason]
		}
		return fmt.Sprintf("%v refused%s: %s%s", e.peer, times, e.reason, because)
	case "lost":
		return fmt.Sprintf("%v lost a transaction: it will never complete", e.peer)
	case "missed":
		return fmt.Sprintf("%s of %v never came, and will not be sent again", count(e.times, "frame"), e.peer)
	case "shortened":
		return fmt.Sprintf("frames to %v have %d bytes at most: something on the way carries less than the interface", e.peer, e.size)
	case "seems restarted":
		return fmt.Sprintf("%v seems restarted; its frames are refused, --readmit takes it back", e.peer)
	case "not shown":
		return fmt.Sprintf("%s not shown: there were too many", count(e.times, "event"))
	}
	return fmt.Sprintf("%v %s%s", e.peer, e.kind, because)
}

// refusedBecause explains the reasons that come without an error.
var refusedBecause = map[string]string{
	"malformed":     ": what it sent is no frame",
	"destination":   ": it wants another endpoint id, or asks for ours and is not one of the peers, or its --profile is opencpi2, which we are not",
	"source":        ": it is not one of the peers: --peer or --accept takes it",
	"no_session":    ": it has no session with this run: does it know an earlier one, or is it of another kind? --profile",
	"inconsistent":  ": its messages contradict each other",
	"too_many_open": ": it has too many incomplete transactions",
	"open_memory":   ": its incomplete transactions take too much memory",
	"foreign":       ": it belongs to another session with the peer, or to another run of it",
	"seal":          ": there is no key for it here, or it has another one, or what it sent was changed or came before",
	"sealed":        ": it seals what it sends, and there is no key here: --key-file",
	"unsealed":      ": it does not seal what it sends, and nothing else is taken here",
	"checksum":      ": it was changed on the way, by the memory of a switch or a router, or has no checksum where that was agreed on",
}

func (p *printer) serving(url string, size uint64) {
	if p.json {
		var b strings.Builder
		p.encode(&b, struct {
			Time  time.Time `json:"time"`
			Event string    `json:"event"`
			URL   string    `json:"url"`
			Size  uint64    `json:"size"`
		}{time.Now(), "serving", url, size})
		p.write(b.String())
	}
}

func (p *printer) summary(s *summary) {
	if p.json {
		var b strings.Builder
		p.encode(&b, s)
		p.write(b.String())
	}
}

// summary has the totals. It is the last object that --json prints.
type summary struct {
	Event        string            `json:"event"`
	Seconds      float64           `json:"seconds"`
	Transactions uint64            `json:"transactions"`
	Bytes        uint64            `json:"bytes"`
	Refused      map[string]uint64 `json:"refused,omitempty"` // frames by reason
	Peers        []peerSummary     `json:"peers"`
}

type peerSummary struct {
	Peer         *peerName         `json:"peer"`
	Transactions uint64            `json:"transactions"`
	Bytes        uint64            `json:"bytes"`
	Refused      map[string]uint64 `json:"refused,omitempty"`
	name         dgrdma.PeerName
}

func summaryOf(e *dgrdma.Endpoint, took time.Duration) *summary {
	all := e.Stats()
	s := &summary{
		Event: "summary", Seconds: took.Seconds(), Transactions: all.Completions, Bytes: all.DataPlaced,
		Refused: all.RefusedReasons(), Peers: []peerSummary{},
	}
	for _, c := range e.Conns() {
		cs := c.Stats()
		s.Peers = append(s.Peers, peerSummary{named(cs.Peer), cs.Completions, cs.DataPlaced, cs.RefusedReasons(), cs.Peer})
	}
	return s
}

func (s *summary) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %s%s in %.3f s\n", count(s.Transactions, "transaction"), count(s.Bytes, "byte"), refusedText(s.Refused), s.Seconds)
	for i := range s.Peers {
		p := &s.Peers[i]
		fmt.Fprintf(w, "  %v: %s, %s%s\n", p.name, count(p.Transactions, "transaction"), count(p.Bytes, "byte"), refusedText(p.Refused))
	}
}

func refusedText(m map[string]uint64) string {
	var list []string
	for _, why := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%s %d", why, m[why]))
	}
	if len(list) == 0 {
		return ""
	}
	return ", frames refused: " + strings.Join(list, ", ")
}
