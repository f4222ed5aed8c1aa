package inspect

import (
	"net/netip"

	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// mostFailures is how many pairs of who failed to reach whom are told apart. Arbitrary: each takes some 200 bytes.
const mostFailures = 1024

// attempt is who asked for connections of TCP in vain, and where.
type attempt struct {
	attemptKey
	named       bool
	connections int
	syns        counted
	refused     int // record
}

type attemptKey struct {
	from    netip.Addr
	to      netip.AddrPort
	refused bool
}

// Attempt takes a connection of TCP that did not come about.
func (a *Analyzer) Attempt(t iwarp.Attempt) {
	a.records = max(a.records, t.First.Record, t.Refused.Record)
	k := attemptKey{t.From.Addr(), t.To, t.Refused.Record != 0}
	f := a.attempts[k]
	if f == nil {
		if len(a.attemptOrder) == mostFailures {
			a.moreFailures.add(1, t.First.Record)
			return
		}
		f = &attempt{attemptKey: k, refused: t.Refused.Record}
		a.attempts[k] = f
		a.attemptOrder = append(a.attemptOrder, f)
	}
	f.named = f.named || t.Named
	f.connections++
	f.syns.add(t.SYNs, t.First.Record)
}

// ofIWARP reports whether what was asked for would have been of iWARP, as far as that can be told: the port is named, or others speak iWARP at
// it, or the two hosts do it with each other.
func (a *Analyzer) ofIWARP(f *attempt) bool {
	if f.named {
		return true
	}
	for _, k := range a.streams {
		if k.strange() && k.of.Request == nil {
			continue
		}
		ends := k.of.TCP.Ends
		for w, end := range ends {
			answers := !k.of.Known || w != int(k.of.Initiator)
			if answers && end.Port() == f.to.Port() || end.Addr() == f.from && ends[1-w].Addr() == f.to.Addr() {
				return true
			}
		}
	}
	return false
}

// nothing reports whether the capture has nothing of DG/RDMA or iWARP. Then all that failed in it may be why.
func (a *Analyzer) nothing() bool { return a.capture.Frames == 0 && len(a.streams) == 0 }

// aboutFailures tells of what did not reach its end.
func (a *Analyzer) aboutFailures(c *findings) {
	a.aboutAttempts(c)
	a.aboutNotices(c)
	if n := a.moreFailures.n; n > 0 {
		c.add(Note, "more failures", n, []int{a.moreFailures.first}, "%s, of connections of TCP that came to nothing, in ICMP or in ARP, %s not looked at: at most %d pairs of ends are, each.",
			count(n, "further failure"), wasWere(n), mostFailures)
	}
}

// aboutAttempts tells of connections of TCP that did not come about. A single SYN may be answered behind the end of the capture.
func (a *Analyzer) aboutAttempts(c *findings) {
	for _, f := range a.attemptOrder {
		s := Problem
		if !a.ofIWARP(f) {
			if s = Warning; !a.nothing() {
				continue
			}
		}
		switch n := f.syns.n; {
		case f.refused != 0:
			c.add(s, "refused", f.connections, []int{f.syns.first, f.refused}, "%v refused %s of TCP from %v (RST): nothing listens at that port, or a firewall rejects it.",
				f.to, count(f.connections, "connection"), f.from)
		case n > 1:
			c.add(s, "no connection", n, []int{f.syns.first}, "%v asked %v %s for a connection of TCP (SYN), and nothing of an answer is in the capture: "+
				"unless only this direction was captured, nobody is there, or a firewall drops it.", f.from, f.to, times(n))
		}
	}
}
