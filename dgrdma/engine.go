package dgrdma

import (
	"github.com/dgrdma/dgrdma/endpoint"
)

// engine returns the configuration as the engine takes it.
func (c *Config) engine() *endpoint.Config {
	if c == nil {
		return nil
	}
	f := &endpoint.Config{
		ID: c.ID, Memory: engineMemory(c.Memory), Service: c.Service, Profile: c.Profile, Window: c.Window, PeerBuffer: c.PeerBuffer, MTU: c.MTU, Queue: c.Queue, GiveUp: c.GiveUp,
		KeepAlive: c.KeepAlive, Coalesce: c.Coalesce, OpenIncoming: c.OpenIncoming, OpenMemory: c.OpenMemory, AcceptAny: c.AcceptAny, MaxPeers: c.MaxPeers,
		PeersPerHost: c.PeersPerHost, KeepOldLife: c.KeepOldLife, BusyPoll: c.BusyPoll, NoHelp: c.NoHelp, Manual: c.Manual, Logger: c.Logger,
		Trace: c.Trace, FirstFrame: c.FirstFrame, Entropy: c.Entropy, Keys: c.Keys, Checksum: c.Checksum,
	}
	if tell := c.OnEvent; tell != nil {
		f.OnEvent = func(e endpoint.Event) {
			tell(ourEvent(e))
		}
	}
	f.NewController = c.NewController
	if m, ok := c.Memory.(interface{ region() *Region }); ok {
		f.Region = (*endpoint.Region)(m.region())
	}
	return f
}

func ourEvent(e endpoint.Event) Event {
	return Event{Kind: e.Kind, Conn: (*Conn)(e.Conn), Peer: e.Peer, Reason: e.Reason, Txn: e.Txn, Frames: e.Frames, Size: e.Size, Err: e.Err}
}

// String is what happened, to whom, and what more is known.
func (ev Event) String() string {
	return endpoint.Event{Kind: ev.Kind, Peer: ev.Peer, Reason: ev.Reason, Txn: ev.Txn, Frames: ev.Frames, Size: ev.Size, Err: ev.Err}.String()
}

// region is for memories that embed a Region: who waits for a word of it drives their
// endpoint.
func (r *Region) region() *Region { return r }

// perConn is a PerConn as the engine asks it.
type perConn struct {
	Memory
	each PerConn
}

// For implements [endpoint.PerConn]. What it returns is not asked again, whether or not it
// embeds the PerConn.
func (p perConn) For(c *endpoint.Conn) endpoint.Memory { return placedInto(p.each.For((*Conn)(c))) }

// sized is a memory that says how large it is, so that services can be behind it.
type sized interface{ Size() uint64 }

// sizedPerConn is a PerConn that does.
type sizedPerConn struct {
	perConn
	sized
}

// engineMemory returns the memory of an endpoint as the engine has it.
func engineMemory(m Memory) endpoint.Memory {
	each, ok := m.(PerConn)
	if !ok {
		return placedInto(m)
	}
	if s, ok := m.(sized); ok {
		return sizedPerConn{perConn{m, each}, s}
	}
	return perConn{m, each}
}

// placedInto returns a memory that data is placed into as the engine has it: there is
// nothing between the two.
func placedInto(m Memory) endpoint.Memory {
	switch m := m.(type) {
	case nil:
		return nil
	case *Region:
		return (*endpoint.Region)(m)
	}
	return m
}

// ourMemory returns a memory of the engine as the program gave it.
func ourMemory(m endpoint.Memory) Memory {
	switch m := m.(type) {
	case nil:
		return nil
	case *endpoint.Region:
		return (*Region)(m)
	case perConn:
		return m.Memory
	case sizedPerConn:
		return m.Memory
	}
	return m
}

// Memory returns what the peer writes into: the endpoint's, or what its PerConn
// returned for this connection.
func (c *Conn) Memory() Memory { return ourMemory((*endpoint.Conn)(c).Memory()) }
