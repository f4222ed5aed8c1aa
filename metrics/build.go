package metrics

import (
	"errors"
	"math"
	"os"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// View returns what /debug/dgrdma shows.
func (r *Registry) View() *View {
	v := &View{Format: Format, PID: os.Getpid(), Time: time.Now().Round(0), Endpoints: []Endpoint{}}
	for _, s := range r.snapshots() {
		v.Endpoints = append(v.Endpoints, s.view())
	}
	v.Elapsed = time.Since(r.began).Seconds()
	return v
}

func (s *snapshot) view() Endpoint {
	e := Endpoint{
		Name: s.name, ID: uint16(s.ep.ID()), Address: s.ep.LocalAddr().String(), URL: s.ep.URL(),
		Age: s.stats.Age.Seconds(), Memory: s.memory(), GiveUp: s.ep.GiveUp().Seconds(), Error: text(s.stats.Err),
		Counters: countsOf(&s.stats.Counters), Refused: s.stats.RefusedReasons(),
		Transport: make(map[string]uint64, len(wireCounters)), Peers: make([]Peer, len(s.peers)),
	}
	for _, c := range wireCounters {
		e.Transport[c.name] = c.of(&s.stats)
	}
	for i := range s.peers {
		e.Peers[i] = s.viewPeer(&s.peers[i])
	}
	if s.links != nil {
		e.Host = viewHost(s.links)
	}
	return e
}

// memory is how large the endpoint's memory is, if it says so.
func (s *snapshot) memory() uint64 {
	if m, ok := s.ep.Memory().(interface{ Size() uint64 }); ok {
		return m.Size()
	}
	return 0
}

func (s *snapshot) viewPeer(c *dgrdma.ConnStats) Peer {
	p := Peer{
		Name: s.connOf(c), ID: uint16(c.Peer.ID), As: uint16(c.As), Address: c.Peer.Addr.String(), Profile: c.Profile, State: stateOf(c), Error: text(c.Err),
		Learned: c.Learned, Memory: c.Memory, FrameBytes: c.FrameSize, Life: c.Life, OurLife: c.Mine, TheirLife: c.Theirs,
		RTT: c.RTT.Seconds(), RTTMin: c.MinRTT.Seconds(), WindowFrames: c.FrameWindow, WindowBytes: windowOf(c),
		InFlight: c.InFlight, Lost: c.Lost, Queued: c.Queued, Open: c.Open,
		Counters: countsOf(&c.Counters), Refused: c.RefusedReasons(),
	}
	if c.Silent >= 0 {
		p.Silent = new(c.Silent.Seconds())
	}
	return p
}

// windowOf returns how many bytes may be in flight; 0: no limit. A controller that
// knows none says as much as it can.
func windowOf(c *dgrdma.ConnStats) int {
	if c.Window >= math.MaxInt32 {
		return 0
	}
	return c.Window
}

func stateOf(c *dgrdma.ConnStats) string {
	switch {
	case c.Down:
		return StateDown
	case !c.Ready():
		return StateIntroducing
	case c.Silent < 0:
		return StateUnheard
	}
	return StateUp
}

func viewHost(s *link.HostStats) *Host {
	h := &Host{
		Memory: s.Memory, Free: s.Free, Made: s.Made, Sent: Traffic(s.Sent), Received: Traffic(s.Received),
		Ports: make([]Port, len(s.Ports)), Links: make([]Link, len(s.Links)),
	}
	for i, p := range s.Ports {
		h.Ports[i] = Port(p)
	}
	for i := range s.Links {
		h.Links[i] = viewLink(&s.Links[i])
	}
	return h
}

func viewLink(s *link.LinkStats) Link {
	l := Link{Number: s.Number, Port: s.Port, Peer: nameOf(s.Peer), State: linkState(s), Age: s.Age.Seconds()}
	if l.State == LinkFailed {
		l.Error = text(s.Err)
	}
	if o := s.Out; o != nil {
		l.Out = &Out{
			Traffic: Traffic(o.Traffic), Buffers: o.Buffers, BufferBytes: o.Size, Free: o.Free, Acquired: o.Acquired, Filled: o.Filled,
			Unacknowledged: o.Unacknowledged, Lost: o.Lost,
		}
	}
	if i := s.In; i != nil {
		l.In = &In{
			Traffic: Traffic(i.Traffic), Buffers: i.Buffers, BufferBytes: i.Size, Free: i.Free, Waiting: i.Waiting, Held: i.Held,
			Owed: i.Owed, EndOfFile: i.EndOfFile,
		}
	}
	return l
}

func linkState(s *link.LinkStats) string {
	switch {
	case s.Err != nil && !errors.Is(s.Err, link.ErrClosed):
		return LinkFailed
	case s.Closing:
		return LinkClosing
	case s.Dialing:
		return LinkDialing
	}
	return LinkOpen
}

func countsOf(c *dgrdma.Counters) map[string]uint64 {
	m := make(map[string]uint64, len(counters))
	for i := range counters {
		m[counters[i].name] = counters[i].of(c)
	}
	return m
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
