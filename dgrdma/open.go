package dgrdma

import (
	"fmt"
	"net/netip"

	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
	"github.com/dgrdma/dgrdma/transport/udp"
	"github.com/dgrdma/dgrdma/url"
)

// defaultSize is the memory of an endpoint whose string has no size.
const defaultSize = 64 << 10

// Open opens an endpoint on the wire that an endpoint string names:
//
//	udp            any port that is free, at all addresses of this machine, IPv4 and IPv6
//	udp:7100       that port there; udp:0.0.0.0:7100 of IPv4 alone; udp:10.0.0.1, udp:10.0.0.1:7100 at one address
//	ether:eth0     an interface; or its address, ether:02:00:5e:10:00:01, or both, ether:eth0/02:00:5e:10:00:01
//	ocpi-udp-rdma:10.0.0.1;7100;1048576.2.16
//	               a complete string, with size of the memory, id, and number of ids
//
// In place of an IP address there may be the name of a host: Open looks it up, for 10 s at
// most, and takes the first of its addresses that this machine has, IPv4 before IPv6.
// What the string says, cfg need not; where both say something it must be the same, but
// for the profile, where the string counts. Without cfg.Memory the endpoint gets a [Region] of the
// string's size, or of 64 KiB, into which every peer that it is connected to may write. With
// new(Region) it has no memory: it only sends, unless it serves something, and its URL has
// no size and id. A Memory that has no Size method needs a size in the string. Without an id
// the endpoint gets one of 10 or more: with a port in the string always the same for an address
// and port, else a random one, and so over Ethernet, where endpoints of several programs share
// an address and nothing but ids tells them apart. [Endpoint.URL] is what peers are told.
//
// An endpoint at all addresses answers from the one that was asked; its URL names one of them, and
// [Endpoint.URLs] has all. A peer that reaches any of them reaches it: name an address where that is too
// many. A peer that asks two of them is two peers. A peer that it dials is sent to from the address that the
// system has on the way there then: without a way Dial fails, and when the address goes, the
// peer is given up.
//
// Options follow the string, as in udp:7100?mtu=9000&gso=off:
//
//	profile=NAME    kind of peers: native, fpga, opencpi, opencpi2 or opencpi-legacy (default native)
//	mtu=BYTES       largest IP packet, or Ethernet payload, 128 to 65535 bytes (default the interface's)
//	window=FRAMES   frames waiting for acknowledgement, 1 to 16383 (default the profile's)
//	cc=NAME         congestion control, of peers of our own kind: auto (bbr, but adaptive on paths with round trips below a millisecond), bbr, adaptive (takes what it can get) or fixed (only the window) (default auto)
//	rate=BYTES      bytes of frames that leave to each peer in a second, at most, 10000 bytes or more (default no bound)
//	peerbuf=BYTES   socket buffer of peers that never acknowledge, by which they are paced, 16384 to 1073741824 bytes (default the profile's)
//	queue=N         transactions that a connection holds, 1 to 1048576 (default 16384)
//	giveup=TIME     without progress for so long, a peer is down, 1ms or more (default 10s)
//	keepalive=TIME  a silent peer is asked after so long whether it is still there (default never)
//	coalesce=TIME   a small transaction waits so long for company (default 0s)
//	accept=any      who is heard: any (peer that sends) or connected (default connected)
//	key-file=FILE   file of the keys under which connections are sealed (default nothing is sealed)
//	checksum=on     frames have a checksum from end to end, where the peer wants that, too: on or off (default off)
//	busypoll=on     receive without sleeping: on or off (default off)
//	help=off        a goroutine that waits receives and sends meanwhile: on or off (default on)
//	sockbuf=BYTES   size of the socket's buffers, and of the Ethernet ring, which else has 8 MiB, or up to 32 for 2048 frames: default (the kernel's), max (what is allowed), or 4096 to 1073741824 bytes (default max)
//	gso=off         UDP segmentation offload, for sending: on or off (default on)
//	gro=off         UDP segmentation offload, for receiving: on or off (default on)
//	ethertype=N     type of the Ethernet frames, 0x0600 to 0xffff (default 0xf042)
//	ring=off        receive Ethernet frames through shared memory: on (or fail) or off (default on where the system has it)
//	xdp=off         send Ethernet frames by AF_XDP: auto (where it passes nothing by), on (or fail) or off (default auto)
//	max=N           number of endpoint ids, for the string that peers are told, 1 to 65535 (default 65535)
func Open(localURL string, cfg *Config) (*Endpoint, error) {
	return OpenOver(localURL, cfg, func(t Transport) Transport { return t })
}

// OpenOver opens an endpoint as [Open] does, on what wrap makes of the wire: one that records, or
// loses. The endpoint closes that.
func OpenOver(localURL string, cfg *Config, wrap func(Transport) Transport) (*Endpoint, error) {
	o, err := openConfigOf(localURL, cfg)
	if err != nil {
		return nil, err
	}
	tc, err := o.wire()
	if err != nil {
		return nil, err
	}
	wrapped := wrap(tc)
	e, err := New(wrapped, &o.cfg)
	if err != nil {
		wrapped.Close()
		return nil, err
	}
	e.url = o.complete(tc)
	return e, nil
}

// OpenTransport opens the wire alone that an endpoint string names, with the options of the string
// that are about it, for a program that sends and receives datagrams of its own, or for [New]. Over
// Ethernet it gets frames for the endpoint id of the string, or for all.
func OpenTransport(localURL string) (Transport, error) {
	o, err := openConfigOf(localURL, &Config{Memory: new(Region)})
	if err != nil {
		return nil, err
	}
	o.cfg.ID = EndpointID(o.url.ID) // none drawn: frames for all
	return o.wire()
}

func openConfigOf(localURL string, cfg *Config) (*openConfig, error) {
	u, err := url.Parse(localURL)
	if err != nil {
		return nil, err
	}
	if u, err = ownPlace(u); err != nil {
		return nil, err
	}
	if a := u.Addr; u.Scheme == url.UDP && !a.Addr().IsValid() {
		u.Addr = netip.AddrPortFrom(netip.IPv6Unspecified(), a.Port())
	}
	o := &openConfig{url: u}
	if cfg != nil {
		o.cfg = *cfg
	}
	return o, o.settings()
}

// openConfig is what Open makes of a string and a Config.
type openConfig struct {
	url       url.Endpoint
	cfg       Config
	mtu       int
	sockbuf   int
	max       int
	gso       bool
	gro       bool
	etherType int
	noRing    bool
	needRing  bool
	noXDP     bool
	needXDP   bool
}

// settings applies the options and what the string says.
func (o *openConfig) settings() error {
	o.gso, o.gro = true, true
	o.max, o.etherType = int(settings.Max.Default), int(settings.EtherType.Default)
	for key, value := range o.url.Options.All() {
		if err := o.agree(key, value); err != nil {
			return err
		}
		if err := o.suits(key, value); err != nil {
			return err
		}
	}
	if o.url.Max != 0 {
		o.max = int(o.url.Max)
	}
	switch id := EndpointID(o.url.ID); {
	case o.cfg.ID == 0 && id == 0:
		o.cfg.ID = o.usualID()
	case o.cfg.ID == 0:
		o.cfg.ID = id
	case id != 0 && id != o.cfg.ID:
		return fmt.Errorf("dgrdma: the endpoint string has id %d, the configuration %d", id, o.cfg.ID)
	}
	o.max = max(o.max, int(o.cfg.ID))
	if o.cfg.Memory == nil {
		size := o.url.Size
		if size == 0 {
			size = defaultSize
		}
		region, err := NewRegion(int(size))
		if err != nil {
			return err
		}
		o.cfg.Memory = region
	}
	switch size := o.memorySize(); {
	case o.cfg.Memory == (*Region)(nil):
		return nil // New says what is wrong
	case o.noMemory(): // services may come
	case size == 0 && o.url.Size == 0:
		return fmt.Errorf("dgrdma: the endpoint string must say how large a Memory is that is no Region: it has to end in ;<size>.<id>.<max>")
	case size != 0 && o.url.Size != 0 && size != o.url.Size:
		return fmt.Errorf("dgrdma: the endpoint string has a size of %d bytes, the memory %d", o.url.Size, size)
	case size != 0:
		o.url.Size = size
	}
	return nil
}

// noMemory reports whether there is memory of no bytes.
func (o *openConfig) noMemory() bool {
	r, ok := o.cfg.Memory.(*Region)
	return ok && r.Size() == 0 && o.url.Size == 0
}

// memorySize returns how large the memory is, or 0 if it does not say.
func (o *openConfig) memorySize() uint64 {
	if m, ok := o.cfg.Memory.(interface{ Size() uint64 }); ok {
		return m.Size()
	}
	return 0
}

// wire opens it.
func (o *openConfig) wire() (transport.Conn, error) {
	switch o.url.Scheme {
	case url.UDP:
		return udp.Listen(udp.Config{Addr: o.url.Addr, MTU: o.mtu, Buffer: o.sockbuf, NoGSO: !o.gso, NoGRO: !o.gro})
	case url.Ether:
		cfg := ether.Config{
			Interface: o.url.Interface, EtherType: uint16(o.etherType), ID: uint16(o.cfg.ID), MTU: o.mtu, Buffer: o.sockbuf,
			NoRing: o.noRing, NeedRing: o.needRing, NoXDP: o.noXDP, NeedXDP: o.needXDP,
		}
		if o.url.MAC.IsValid() {
			mac := o.url.MAC.As6()
			cfg.MAC = &mac
		}
		if o.cfg.Logger != nil {
			cfg.OnWay = o.logWay
		}
		return ether.Listen(cfg)
	}
	return nil, fmt.Errorf("dgrdma: endpoint string names %v, which is no wire of ours", o.url.Scheme)
}

// logWay logs by which way Ethernet frames leave, as a capture on this machine shows one way only.
func (o *openConfig) logWay(iface string, why error) {
	if l := o.cfg.Logger; why != nil {
		l.Info("Ethernet frames are sent by system calls instead of AF_XDP", "interface", iface, "why", why)
	} else {
		l.Info("Ethernet frames are sent by AF_XDP: captures on this machine do not show them, unless xdp=off", "interface", iface)
	}
}

// complete returns the endpoint as peers see it.
func (o *openConfig) complete(tc transport.Conn) url.Endpoint {
	u := url.Endpoint{Scheme: o.url.Scheme, Size: o.url.Size, ID: uint16(o.cfg.ID), Max: uint16(o.max), UUID: o.url.UUID}
	if o.url.Dialect != url.Short {
		u.Dialect = o.url.Dialect
	}
	switch local := tc.LocalAddr(); local.Kind() {
	case transport.KindUDP:
		at := local.AddrPort()
		u.Addr = netip.AddrPortFrom(udp.Addresses(at.Addr())[0], at.Port())
	case transport.KindEther:
		u.Interface, u.MAC = tc.(*ether.Conn).Interface(), url.MACFrom6(local.MAC())
	}
	return u
}
