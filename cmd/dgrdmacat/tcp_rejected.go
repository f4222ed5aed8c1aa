package main

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Of clients that a server rejects it tells this many within that time, so that a flood of them fills no log. Arbitrary.
const (
	mostRejectedTold = 64
	rejectedTime     = time.Hour
)

// clientLog is where a server over TCP tells of its clients, several of which may do so at a time. Its zero value, with a writer, is
// ready.
type clientLog struct {
	io.Writer
	mu    sync.Mutex
	since time.Time
	told  map[string]bool // of rejected clients: address and why
}

// Write writes whole lines.
func (l *clientLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Writer.Write(b)
}

// tell writes a line about a client.
func (l *clientLog) tell(client net.Addr, what any) { fmt.Fprintf(l, "%v: %v\n", client, what) }

// rejected tells why a client was rejected, of each address once within the time.
func (l *clientLog) rejected(now time.Time, client net.Addr, why error) {
	if line := l.news(now, client, why); line != "" {
		io.WriteString(l, line)
	}
}

func (l *clientLog) news(now time.Time, client net.Addr, why error) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= rejectedTime {
		l.since, l.told = now, make(map[string]bool)
	}
	host, _, err := net.SplitHostPort(client.String())
	if err != nil {
		host = client.String()
	}
	key := fmt.Sprintf("%s: %v", host, why)
	if l.told[key] || len(l.told) > mostRejectedTold {
		return ""
	}
	l.told[key] = true
	if len(l.told) > mostRejectedTold {
		return fmt.Sprintf("more clients are rejected, of which nothing is said for %v\n", rejectedTime-now.Sub(l.since).Round(time.Second))
	}
	return fmt.Sprintf("%v: %v\n", client, why)
}
