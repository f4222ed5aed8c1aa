package main

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Of what peers cause at a server it prints so many lines at once, and then one within each lineEvery, so that a flood fills no log. How
// many were left out it says once within each summaryEvery, and at the end. All arbitrary.
const (
	mostLines    = 2 * mostTCPClients // that all of a server end at once is no flood
	lineEvery    = time.Second
	summaryEvery = time.Minute
	// sameWithin is for how long the same is not told again of an address.
	sameWithin = time.Hour
)

// lineBudget bounds lines. The zero lineBudget is ready.
type lineBudget struct {
	due  time.Time // when all that was spent is earned again
	out  uint64    // lines that were left out and of which nothing was said yet
	said time.Time // when something was
}

// spend reports whether a line may be printed; one that may not is counted as left out.
func (b *lineBudget) spend(now time.Time) bool {
	if b.due.Sub(now) > (mostLines-1)*lineEvery {
		b.out++
		return false
	}
	if b.due.Before(now) {
		b.due = now
	}
	b.due = b.due.Add(lineEvery)
	return true
}

// leftOut returns how many lines were left out, where it is time to say so, or with end in any case.
func (b *lineBudget) leftOut(now time.Time, end bool) (n uint64) {
	if !end && now.Sub(b.said) < summaryEvery {
		return 0
	}
	if n, b.out = b.out, 0; n > 0 {
		b.said = now
	}
	return n
}

// peerLog is where a server tells what its peers do, several of which may do so at a time.
type peerLog struct {
	to io.Writer

	mu     sync.Mutex
	budget lineBudget
	later  *time.Timer     // says what was left out; nil: nothing was
	since  time.Time       // of told
	told   map[string]bool // addresses, and what was told of them
}

func newPeerLog(to io.Writer) *peerLog { return &peerLog{to: to} }

// Write writes a line, or leaves it out.
func (l *peerLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget.spend(time.Now()) {
		return l.to.Write(b)
	}
	if l.later == nil {
		l.later = time.AfterFunc(summaryEvery, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.later != nil {
				l.later = nil
				l.summarize()
			}
		})
	}
	return len(b), nil
}

// summarize says how many lines were left out. Guarded by mu.
func (l *peerLog) summarize() {
	if n := l.budget.leftOut(time.Now(), true); n > 0 {
		fmt.Fprintf(l.to, "%s about peers left out: there were too many\n", count(n, "line"))
	}
}

// close says what was left out.
func (l *peerLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.later != nil {
		l.later.Stop()
		l.later = nil
	}
	l.summarize()
}

// tell writes a line about a client.
func (l *peerLog) tell(client net.Addr, what any) { fmt.Fprintf(l, "%v: %v\n", client, what) }

// rejected tells why a client was rejected, of each host and reason once within the time.
func (l *peerLog) rejected(client net.Addr, why error) {
	host, _, err := net.SplitHostPort(client.String())
	if err != nil {
		host = client.String()
	}
	if l.news(fmt.Sprintf("%s: %v", host, why)) {
		l.tell(client, why)
	}
}

// news reports whether that was not told within the time. Of so many it is known.
func (l *peerLog) news(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.told == nil || now.Sub(l.since) >= sameWithin {
		l.since, l.told = now, make(map[string]bool)
	}
	if l.told[what] {
		return false
	}
	if len(l.told) < mostLines {
		l.told[what] = true
	}
	return true
}
