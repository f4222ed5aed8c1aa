package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
)

// mostOfAKind is how many findings of one kind and severity a report has, of all flows together. The last of them says how many more
// there are.
const mostOfAKind = 5

// causeWeight is the least of what other findings follow from.
const causeWeight = math.MaxInt32 / 2

// findings collects findings.
type findings struct {
	all   []Finding
	names func(k flowKey) (from, to string)
	flow  *flow // that the next ones are about; nil: the capture

	connection int // likewise; 0: none
}

func (c *findings) add(s Severity, kind string, weight int, records []int, format string, args ...any) {
	f := Finding{Severity: s, Kind: kind, Text: fmt.Sprintf(format, args...), Records: records, Connection: c.connection, weight: float64(weight)}
	if c.flow != nil {
		f.Flow = c.flow.number + 1
	}
	c.all = append(c.all, f)
}

// first has the finding that was added last come before all others, more severe ones too, as they may follow from it.
func (c *findings) first() { c.all[len(c.all)-1].explains = true }

func (a *Analyzer) findings() []Finding {
	c := findings{names: a.names()}
	a.aboutCapture(&c)
	a.aboutLosses(&c)
	for _, f := range a.order {
		c.flow = f
		f.aboutLoss(&c)
		f.aboutOrder(&c)
		f.aboutPeer(&c)
		f.aboutSessions(&c)
	}
	c.flow = nil
	a.aboutQuestions(&c)
	a.aboutSealed(&c)
	a.aboutConnections(&c)
	a.aboutFailures(&c)
	return c.sorted()
}

var rank = map[Severity]int{Problem: 0, Warning: 1, Note: 2}

// sorted returns the findings that matter most first, and not too many of a kind.
func (c *findings) sorted() []Finding {
	slices.SortStableFunc(c.all, func(a, b Finding) int {
		return cmp.Or(before(a.explains, b.explains), cmp.Compare(rank[a.Severity], rank[b.Severity]), cmp.Compare(b.weight, a.weight))
	})
	type group struct {
		severity Severity
		kind     string
	}
	there, told := map[group]int{}, map[group]int{}
	for i := range c.all {
		there[group{c.all[i].Severity, c.all[i].Kind}]++
	}
	out := []Finding{}
	for _, f := range c.all {
		g := group{f.Severity, f.Kind}
		told[g]++
		if told[g] > mostOfAKind {
			continue
		}
		if more := there[g] - mostOfAKind; told[g] == mostOfAKind && more > 0 {
			f.More = more
			f.Text += fmt.Sprintf(" %s like this one %s left out.", count(more, "finding"), isAre(more))
		}
		out = append(out, f)
	}
	return out
}

// before orders what is so before what is not.
func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// names returns what the ends are called: by their ids, if these are different. The id 0 is of somebody that is asked for.
func (a *Analyzer) names() func(k flowKey) (from, to string) {
	where := map[frame.EndpointID]capture.Addr{}
	unique := true
	sees := func(k *flowKey) {
		if addr, known := where[k.srcID]; known && k.srcID != 0 && addr != k.src {
			unique = false
		}
		where[k.srcID] = k.src
		if addr, known := where[k.dstID]; known && k.dstID != 0 && addr != k.dst && k.dst != (capture.Addr{}) {
			unique = false
		}
	}
	for _, f := range a.order {
		sees(&f.key)
	}
	for _, w := range a.wayOrder {
		sees(&w.key)
	}
	name := func(id frame.EndpointID, addr capture.Addr) string {
		switch {
		case id == 0 && addr == (capture.Addr{}):
			return "whoever is there"
		case id == 0:
			return fmt.Sprintf("whoever is at %v", addr)
		case unique || addr == (capture.Addr{}):
			return fmt.Sprint("endpoint ", id)
		}
		return fmt.Sprintf("endpoint %d (%v)", id, addr)
	}
	return func(k flowKey) (from, to string) { return name(k.srcID, k.src), name(k.dstID, k.dst) }
}

// disorder is by how much times of packets may go backwards that no clock was set between: each
// processor and each interface hands on what it has when it comes to it. Arbitrary: more than a
// packet waits there, and less than any clock is set by.
const disorder = time.Millisecond

func (a *Analyzer) aboutCapture(c *findings) {
	k := &a.capture
	if k.Damage != "" {
		var where []int
		if a.damage != nil && a.damage.Record > 0 {
			where = []int{a.damage.Record}
		}
		if a.damage != nil && errors.Is(a.damage, io.ErrUnexpectedEOF) {
			c.add(Note, "cut file", math.MaxInt32, where, "The capture is incomplete, which says nothing of the link: %s. It was cut, or is still being written. "+
				"This report is of what came before.", k.Damage)
		} else {
			c.add(Problem, "damaged file", math.MaxInt32, where, "The file is damaged: %s. This report is of what came before.", k.Damage)
		}
	}
	if k.Frames == 0 && k.FPDUs == 0 {
		named, ports := "", "ports of UDP or TCP that have to be named"
		switch {
		case a.onlyUDP && a.onlyTCP:
			named, ports = ": none at the ports named by --port", "other ports"
		case a.onlyUDP:
			named, ports = ": none of DG/RDMA at the ports of UDP named by --port", "other ports of UDP, ports of TCP that have to be named"
		case a.onlyTCP:
			named, ports = ": none of iWARP at the ports of TCP named by --port", "other ports of TCP, ports of UDP that have to be named"
		}
		c.add(Note, "no frames", 0, nil, "No frames of DG/RDMA or iWARP were found among the %s of this capture%s. "+
			"Another Ethernet type, %s, or a snap length that cuts too much away?", count(k.Records, "record"), named, ports)
	}
	if k.Changed > 0 {
		c.add(Problem, "checksum", k.Changed, []int{a.firstChanged},
			"%s %s a wrong checksum, and a right one of the wire: the memory of a switch, a router or a host before the capture changes what it holds. Their receiver drops them, and they are sent again. "+
				"What is sent without a checksum of its own is changed as well.", count(k.Changed, "frame"), has(k.Changed))
	}
	if k.Malformed > 0 {
		c.add(Warning, "malformed", k.Malformed, []int{a.firstMalformed},
			"%s %s malformed: their receiver drops them.", count(k.Malformed, "frame"), wasWere(k.Malformed))
	}
	if n := a.unsplit.n; n > 0 {
		c.add(Warning, "behind snap length", math.MaxInt32, []int{a.unsplit.first}, "A snap length cut %s within what may be the first of several frames, as a host with offload hands them around: the others would be behind it, in no count or picture of this report. "+
			"Capture whole packets (tcpdump -s 0), or with gso=off and gro=off at both endpoints.", count(n, "record"))
		c.first()
	}
	if k.Hidden > 0 {
		c.add(Warning, "behind snap length", math.MaxInt32, []int{a.firstHidden}, "A snap length cut %s of several frames, as a host with offload hands them around: at least %s %s behind it, in no count or picture of this report. "+
			"What became of them, what they acknowledge and what they complete is not known. Capture whole packets (tcpdump -s 0), or with gso=off and gro=off at both endpoints.",
			count(a.hiddenIn, "record"), count(k.Hidden, "frame"), isAre(k.Hidden))
		c.first()
	}
	if a.headless > 0 {
		c.add(Warning, "behind snap length", math.MaxInt32, nil, "A snap length cut %s within their headers: no count or picture of this report has them, and what became of them is not known. "+
			"Capture whole packets (tcpdump -s 0).", count(a.headless, "frame"))
		c.first()
	}
	if k.Cut > 0 {
		c.add(Note, "cut", k.Cut, nil, "%s %s captured without their end (snap length, or fragments): "+
			"messages behind the cut are not known.", count(k.Cut, "frame"), wasWere(k.Cut))
	}
	if n := a.unsure; n > 0 {
		c.add(Note, "cut TCP", n, nil, "A snap length hides whether there is iWARP in %s of TCP: no count or picture of this report has it. Capture whole packets (tcpdump -s 0).", count(n, "record"))
	}
	if a.fragments > 0 {
		c.add(Warning, "fragments", a.fragments, nil, "%s of UDP datagrams: the frames are larger than the path carries in one piece. "+
			"One lost fragment loses the frame; choose a smaller MTU.", count(a.fragments, "fragment"))
	}
	if a.unknownLink > 0 {
		c.add(Note, "unknown link", a.unknownLink, nil, "%s from interfaces of a type that is not understood.", count(a.unknownLink, "record"))
	}
	if a.mostBackwards >= disorder {
		c.add(Warning, "time", k.Backwards, []int{a.firstBackwards}, "Time goes backwards %s, by up to %s: "+
			"the clock was set, or files were joined. Times in this report are as captured.", times(k.Backwards), Span(a.mostBackwards))
	}
	if a.untimed > 0 {
		c.add(Note, "time", a.untimed, nil, "%s %s no time; it is taken from the frame before.", count(a.untimed, "frame"), has(a.untimed))
	}
	if k.Unfollow > 0 {
		c.add(Note, "more flows", k.Unfollow, []int{a.firstUnfollow}, "%s of further flows were only counted: at most %d flows are followed.",
			count(k.Unfollow, "frame"), mostFlows)
	}
}
