package inspect

import (
	"fmt"
	"net/netip"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame/captured"
)

// Tap is a source whose records an Analyzer sees before they are used, for what the network says of itself: ICMP, ARP.
type Tap struct {
	capture.Source
	Analyzer *Analyzer
	Frames   captured.Options
	records  int
}

// Next implements [capture.Source].
func (t *Tap) Next() (capture.Record, error) {
	r, err := t.Source.Next()
	if err == nil {
		t.records++
		if n, ok := r.Notice(); ok {
			t.Analyzer.notice(t.records, &n, !n.TCP && n.Dst.IsValid() && t.Frames.Takes(n.Src, n.Dst, n.Data, n.Length))
		}
	}
	return r, err
}

// notice is what somebody was told of packets to somewhere, or asked for.
type notice struct {
	noticeKey
	times    counted
	ofFrames bool // it quotes one
	mtu      int  // the least
}

type noticeKey struct {
	kind     capture.NoticeKind
	tcp      bool
	from, to netip.Addr
	dst      netip.AddrPort
}

func (a *Analyzer) notice(record int, n *capture.Notice, ofFrames bool) {
	a.records = max(a.records, record)
	k := noticeKey{n.Kind, n.TCP, n.From, n.To, n.Dst}
	if n.Kind == capture.Has { // whoever asked
		k.from = netip.Addr{}
	}
	f := a.notices[k]
	if f == nil {
		if len(a.noticeOrder) == mostFailures {
			a.moreFailures.add(1, record)
			return
		}
		f = &notice{noticeKey: k}
		a.notices[k] = f
		a.noticeOrder = append(a.noticeOrder, f)
	}
	f.times.add(1, record)
	f.ofFrames = f.ofFrames || ofFrames
	if n.MTU > 0 && (f.mtu == 0 || n.MTU < f.mtu) {
		f.mtu = n.MTU
	}
}

// party is one end of frames of DG/RDMA over UDP, or of connections of iWARP.
type party struct {
	addr netip.AddrPort
	tcp  bool
}

// parties are all that are known, with the record from which on something came from them; 0: nothing did.
type parties struct {
	spoke map[party]int
	hosts map[netip.Addr]bool // which spoke
}

func (p *parties) add(addr netip.AddrPort, tcp bool, record int) {
	if !addr.IsValid() {
		return
	}
	k := party{addr, tcp}
	if was, known := p.spoke[k]; !known || record != 0 && (was == 0 || record < was) {
		p.spoke[k] = record
	}
	p.hosts[addr.Addr()] = p.hosts[addr.Addr()] || record != 0
}

func (a *Analyzer) parties() *parties {
	p := &parties{map[party]int{}, map[netip.Addr]bool{}}
	udp := func(k flowKey, record int) {
		p.add(k.src.UDP, false, record)
		p.add(k.dst.UDP, false, 0)
	}
	for _, f := range a.order {
		udp(f.key, f.firstRecord)
	}
	for _, w := range a.wayOrder {
		udp(w.key, w.firstRecord)
	}
	for _, q := range a.questionOrder {
		udp(q.key, q.times.first)
	}
	for _, k := range a.streams {
		for w, end := range k.of.TCP.Ends {
			record := 0
			if k.of.TCP.Halves[w].SYNs+k.of.TCP.Halves[w].Segments > 0 {
				record = k.firstRecord
			}
			p.add(end, true, record)
		}
	}
	for _, f := range a.attemptOrder {
		if a.ofIWARP(f) {
			p.add(f.to, true, 0)
			p.hosts[f.from] = true
		}
	}
	return p
}

// aboutNotices tells what the network said of packets of DG/RDMA and iWARP; in a capture that has nothing of these, all that it said.
func (a *Analyzer) aboutNotices(c *findings) {
	p := a.parties()
	for _, f := range a.noticeOrder {
		switch f.kind {
		case capture.Has:
		case capture.Asks:
			a.aboutNeighbour(c, f, p)
		default:
			a.aboutLost(c, f, p)
		}
	}
}

// aboutNeighbour tells of who asked for an address and got no answer. One question may be answered behind the end of the capture.
func (a *Analyzer) aboutNeighbour(c *findings, f *notice, p *parties) {
	n := f.times.n
	spoke, meant := p.hosts[f.to]
	if n < 2 || spoke || a.notices[noticeKey{kind: capture.Has, to: f.to}] != nil || !p.hosts[f.from] && !a.nothing() {
		return
	}
	by := "ARP"
	if f.to.Is6() {
		by = "neighbour discovery"
	}
	s := Warning
	if meant {
		s = Problem
	}
	c.add(s, "no neighbour", n, []int{f.times.first}, "%v asked %s who has the address %v (%s), and nobody answered: unless only this direction was captured, no host of its network has it.", f.from, times(n), f.to, by)
}

// aboutLost tells of packets that did not arrive. That somebody is gone who was there may be the end of what was to be done.
func (a *Analyzer) aboutLost(c *findings, f *notice, p *parties) {
	n := f.times.n
	spoke, known := p.spoke[party{f.dst, f.tcp}]
	ours, before := known || f.ofFrames, spoke != 0 && spoke < f.times.first
	s := Problem
	switch {
	case !ours && !a.nothing():
		return
	case before && n == 1:
		s = Note
	case !ours, before:
		s = Warning
	}
	protocol := "UDP"
	if f.tcp {
		protocol = "TCP"
	}
	kind, what := "", ""
	switch f.kind {
	case capture.NoPort:
		where := fmt.Sprintf("its %s port %d", protocol, f.dst.Port())
		if f.from != f.dst.Addr() {
			where = fmt.Sprintf("%s port %d of %v", protocol, f.dst.Port(), f.dst.Addr())
		}
		kind, what = "no port", "nothing listens at "+where
		if before {
			what += " any more"
		}
	case capture.NoHost:
		kind, what = "no host", fmt.Sprintf("it does not reach the host %v", f.dst.Addr())
	case capture.NoRoute:
		kind, what = "no route", fmt.Sprintf("it has no route to %v", f.dst.Addr())
	case capture.Prohibited:
		kind, what = "prohibited", fmt.Sprintf("packets to %v, %s, are prohibited: a firewall rejects them", f.dst, protocol)
	case capture.TooLarge:
		kind, what = "too large", fmt.Sprintf("packets to %v, %s, are too large for the next link", f.dst, protocol)
		if f.mtu > 0 {
			what += fmt.Sprintf(", which carries %s", count(f.mtu, "byte"))
		}
		if s = Note; !f.tcp { // TCP sends them again, shorter
			s, what = Problem, what+": such frames do not arrive, choose a smaller MTU"
		}
	}
	c.add(s, kind, n, []int{f.times.first}, "%v told %v %s that %s (ICMP).", f.from, f.to, times(n), what)
}
