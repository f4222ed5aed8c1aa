package settings

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

const (
	// LeastFrame is the shortest frame that is of use: it has room for a header of any kind, a
	// message, and 16 bytes of data, the largest chunk that peers need, or a chunk of our own kind and a checksum.
	LeastFrame = frame.SessionHeaderSize + frame.MessageHeaderSize + 16
	// LeastOpenMemory is room for what a frame of usual size can open.
	LeastOpenMemory = 64 << 10
	// MostOpen bounds how many transactions can be open: so many are told from those
	// that are over.
	MostOpen = 1 << 16

	maxID = 1<<16 - 1
)

var onOff = []string{On, Off}

// The table.
var (
	ID = &Setting{
		Field: "ID", Flag: "id", Value: "N", Means: "endpoint id", Least: 1, Most: maxID,
		Without: "that of the endpoint string, or a random one",
	}
	Profile = &Setting{
		Option: "profile", Field: "Profile", Flag: "profile", Value: "NAME", Means: "kind of peers", Kind: Choice,
		Words: []string{"native", "fpga", "opencpi", "opencpi2", "opencpi-legacy"}, Without: "native",
	}
	MTU = &Setting{
		Option: "mtu", Flag: "mtu", Value: "BYTES", Means: "largest IP packet, or Ethernet payload", Bytes: true,
		Least: transport.LeastMTU, Most: transport.MostMTU, Without: "the interface's",
	}
	Frame = &Setting{
		Field: "MTU", Value: "BYTES", Means: "longest frame, header and messages", Bytes: true, Least: LeastFrame, Most: frame.MaxData,
		Without: "what the wire carries",
	}
	Window = &Setting{
		Option: "window", Field: "Window", Flag: "window", Value: "FRAMES", Means: "frames waiting for acknowledgement",
		Least: 1, Most: ack.MaxWindow, Without: "the profile's",
	}
	Congestion = &Setting{
		Option: "cc", Field: "Congestion", Value: "NAME", Means: "congestion control, of peers of our own kind", Kind: Choice,
		Words: []string{Auto, "bbr", "adaptive", "fixed"}, Choices: "auto (bbr, but adaptive on paths with round trips below a millisecond), bbr, adaptive (takes what it can get) or fixed (only the window)",
		Without: Auto,
	}
	MaxRate = &Setting{
		Option: "rate", Field: "MaxRate", Value: "BYTES", Means: "bytes of frames that leave to each peer in a second, at most", Bytes: true, Least: 10_000, Without: "no bound",
	}
	PeerBuffer = &Setting{
		Option: "peerbuf", Field: "PeerBuffer", Value: "BYTES", Means: "socket buffer of peers that never acknowledge, by which they are paced", Bytes: true,
		Least: 16384, Most: 1 << 30, Without: "the profile's",
	}
	Queue = &Setting{
		Option: "queue", Field: "Queue", Value: "N", Means: "transactions that a connection holds",
		Least: 1, Most: 1 << 20, Default: 16384,
	}
	GiveUp = &Setting{
		Option: "giveup", Field: "GiveUp", Value: "TIME", Means: "without progress for so long, a peer is down", Kind: Time, Least: int64(time.Millisecond), Default: int64(10 * time.Second),
	}
	KeepAlive = &Setting{
		Option: "keepalive", Field: "KeepAlive", Value: "TIME", Means: "a silent peer is asked after so long whether it is still there", Kind: Time, Without: "never",
	}
	Coalesce = &Setting{
		Option: "coalesce", Field: "Coalesce", Value: "TIME", Means: "a small transaction waits so long for company", Kind: Time,
	}
	OpenIncoming = &Setting{
		Field: "OpenIncoming", Value: "N", Means: "incomplete transactions of each peer", Least: 1, Most: MostOpen, Default: 4096,
	}
	OpenMemory = &Setting{
		Field: "OpenMemory", Value: "BYTES", Means: "memory for what is incomplete", Bytes: true, Least: LeastOpenMemory, Default: 16 << 20,
	}
	Accept = &Setting{
		Option: "accept", Field: "AcceptAny", Flag: "accept", Value: "any", Means: "who is heard", Kind: Choice,
		Words: []string{"any", "connected"}, Choices: "any (peer that sends) or connected", Without: "connected",
	}
	MaxPeers = &Setting{
		Field: "MaxPeers", Value: "N", Means: "peers, connected and learned", Least: 1, Most: maxID, Default: 4096,
	}
	PeersPerHost = &Setting{
		Field: "PeersPerHost", Value: "N", Means: "learned peers of one IP or MAC address, at most MaxPeers", Least: 1, Most: maxID,
		Without: "a quarter of MaxPeers",
	}
	KeyFile = &Setting{
		Option: "key-file", Field: "Keys", Flag: "key-file", Value: "FILE", Means: "file of the keys under which connections are sealed", Kind: Path,
		Without: "nothing is sealed",
	}
	Checksum = &Setting{
		Option: "checksum", Field: "Checksum", Flag: "frame-checksum", Value: On, Means: "frames have a checksum from end to end, where the peer wants that, too", Kind: Choice,
		Words: onOff, Without: Off,
	}
	KeepOldLife = &Setting{
		Field: "KeepOldLife", Value: On, Means: "refuse a peer that restarted until Reset", Kind: Choice, Words: onOff, Without: Off,
	}
	BusyPoll = &Setting{
		Option: "busypoll", Field: "BusyPoll", Flag: "busy-poll", Value: On, Means: "receive without sleeping", Kind: Choice, Words: onOff, Without: Off,
	}
	Help = &Setting{
		Option: "help", Field: "NoHelp", Value: Off, Means: "a goroutine that waits receives and sends meanwhile", Kind: Choice, Words: onOff, Without: On,
	}
	Manual = &Setting{
		Field: "Manual", Value: On, Means: "no goroutines", Kind: Choice, Words: onOff, Without: Off,
	}
	FirstFrame = &Setting{
		Field: "FirstFrame", Value: "N", Means: "first frame id, for profiles that do not insist on 1", Least: 1, Most: maxID, Without: "a random one",
	}
	SockBuf = &Setting{
		Option: "sockbuf", Flag: "sockbuf", Value: "BYTES", Means: "size of the socket's buffers, and of the Ethernet ring, which else has 8 MiB, or up to 32 for 2048 frames",
		Words: []string{"default", "max"}, Choices: "default (the kernel's), max (what is allowed), or", Bytes: true, Least: 4096, Most: 1 << 30, Without: "max",
	}
	GSO = &Setting{
		Option: "gso", Flag: "gso", Value: Off, Means: "UDP segmentation offload, for sending", Kind: Choice, Words: onOff, Without: On, Wire: OverUDP,
	}
	GRO = &Setting{
		Option: "gro", Flag: "gro", Value: Off, Means: "UDP segmentation offload, for receiving", Kind: Choice, Words: onOff, Without: On, Wire: OverUDP,
	}
	EtherType = &Setting{
		Option: "ethertype", Value: "N", Means: "type of the Ethernet frames", Kind: Hex, Least: transport.LeastEtherType, Most: 0xffff,
		Default: frame.EtherType, Wire: OverEther,
	}
	Ring = &Setting{
		Option: "ring", Value: Off, Means: "receive Ethernet frames through shared memory", Kind: Choice,
		Words: onOff, Choices: "on (or fail) or off", Without: "on where the system has it", Wire: OverEther,
	}
	XDP = &Setting{
		Option: "xdp", Value: Off, Means: "send Ethernet frames by AF_XDP", Kind: Choice,
		Words: []string{Auto, On, Off}, Choices: "auto (where it passes nothing by), on (or fail) or off", Without: Auto, Wire: OverEther,
	}
	Max = &Setting{
		Option: "max", Value: "N", Means: "number of endpoint ids, for the string that peers are told", Least: 1, Most: maxID, Default: maxID,
	}
)

// All are the settings in the order in which documentation has them.
var All = []*Setting{
	ID, Profile, MTU, Frame, Window, Congestion, MaxRate, PeerBuffer, Queue, GiveUp, KeepAlive, Coalesce, OpenIncoming, OpenMemory, Accept, MaxPeers, PeersPerHost, KeyFile, Checksum, KeepOldLife,
	BusyPoll, Help, Manual, FirstFrame, SockBuf, GSO, GRO, EtherType, Ring, XDP, Max,
}
