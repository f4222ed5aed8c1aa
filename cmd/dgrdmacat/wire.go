package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

// wireFlags say how an endpoint uses its wire. Those that were given become
// options of its endpoint string.
type wireFlags struct {
	profile  settingFlag
	window   settingFlag
	mtu      settingFlag
	sockbuf  settingFlag
	gso, gro settingFlag
	keyFile  keyFlag
	checksum settingFlag
}

func (w *wireFlags) register(fs *flag.FlagSet) {
	w.profile.register(fs, profilesBetweenUs, "; both sides need the same")
	w.window.register(fs, settings.Window, "")
	w.mtu.register(fs, settings.MTU, "")
	w.sockbuf.register(fs, settings.SockBuf, "")
	w.gso.register(fs, settings.GSO, "")
	w.gro.register(fs, settings.GRO, "")
	w.keyFile.register(fs)
	w.checksum.register(fs, settings.Checksum, "")
}

// profilesBetweenUs are the kinds of peers that two endpoints of ours can be for each
// other. OpenCPI's second driver does not acknowledge, so nobody knows what arrived.
var profilesBetweenUs = func() *settings.Setting {
	s := *settings.Profile
	s.Words = slices.DeleteFunc(slices.Clone(s.Words), func(name string) bool { return name == "opencpi2" })
	return &s
}()

// apply adds what was asked for to the options of an endpoint string.
func (w *wireFlags) apply(u url.Endpoint) (url.Endpoint, error) {
	if err := w.profile.sayOnce(u); err != nil {
		return u, err
	}
	for _, f := range []*settingFlag{&w.window, &w.mtu, &w.sockbuf, &w.gso, &w.gro, &w.keyFile.settingFlag, &w.checksum} {
		if f.text == "" {
			continue
		}
		if err := f.sayOnce(u); err != nil {
			return u, err
		}
		if _, err := checkOption(u, f.of.Option, f.text); err != nil {
			return u, badUsage("--%s: %w", f.of.Flag, err)
		}
		u.Options = u.Options.With(f.of.Option, f.text)
	}
	return u, nil
}

// profileBetweenUs returns what two endpoints of ours take each other for when
// both play a peer of that kind. What such a peer can take stays as it is:
// windows, frames, alignment, open transactions. What it never does but the
// experiment needs, and what only one side may do, is changed here.
func profileBetweenUs(name string, overUDP, serving bool) (dgrdma.Profile, error) {
	p, err := dgrdma.ProfileByName(name, overUDP)
	if err != nil {
		return p, badUsage("--profile %s: need %s", name, profilesBetweenUs.Allowed())
	}
	native, _ := dgrdma.ProfileByName("native", overUDP)
	switch name {
	case "fpga":
		// The card needs no acknowledgements, because it never sends again: our
		// double of it does, and acknowledges as often as the card would. Its
		// acknowledgements are runs around what is new, which do not mean that all
		// before them arrived. Frames without messages are not acknowledged by us.
		p.Acks, p.AckEvery, p.AckDelay = native.Acks, 8, native.AckDelay
		p.NeverRetransmits, p.OverCounts = false, false
		p.Cumulative, p.Probe = false, false
	case "opencpi", "opencpi-legacy":
		// Two sides that both spare the other's short memory of ids can wait for
		// each other. The driver itself does not spare ours.
		if serving {
			p.Span = native.Span
		}
	}
	return p, nil
}

// withMemory returns the string of an endpoint of ours that has so much memory. The size in a
// complete one is what was served when it was printed, perhaps by another command: it is no
// wish for as much now.
func withMemory(local url.Endpoint, size uint64) url.Endpoint {
	if local.Size = size; local.Dialect == url.Short {
		local.Size = 0 // it has no place for it
	}
	return local
}

// openHost opens a host of links.
func openHost(stderr io.Writer, local url.Endpoint, memory int, cfg dgrdma.Config) (*link.Host, error) {
	open := func(local string, cfg *dgrdma.Config) (*dgrdma.Endpoint, error) {
		return openSaying(stderr, local, cfg)
	}
	return openHostBy(open, local, memory, cfg)
}

// openHostBy opens a host of links whose endpoint open opens.
func openHostBy(open func(local string, cfg *dgrdma.Config) (*dgrdma.Endpoint, error), local url.Endpoint, memory int, cfg dgrdma.Config) (*link.Host, error) {
	at := withMemory(local, uint64(memory)).String()
	return link.Open(at, &link.Config{Memory: memory, Endpoint: cfg, Open: func(c *dgrdma.Config) (*dgrdma.Endpoint, error) { return open(at, c) }})
}

// parseLocal reads where an endpoint of ours is to be.
func parseLocal(flagName, s string) (url.Endpoint, error) { return parseEndpoint("--"+flagName, s) }

// parseServed reads where an endpoint of ours is to be that peers come to.
func parseServed(what, s string) (url.Endpoint, error) {
	u, err := parseEndpoint(what, s)
	if err == nil {
		err = fitsHere(u)
	}
	return u, err
}

// parseEndpoint reads where an endpoint of ours is to be; what says where in the command
// line that stands.
func parseEndpoint(what, s string) (url.Endpoint, error) {
	if _, err := strconv.ParseUint(s, 10, 16); err == nil {
		return url.Endpoint{}, badUsage("%s %s: did you mean udp:%s?", what, s, s)
	}
	return parseString(what, s, "give one such as udp:7100 or ether:eth0")
}

// parseString reads an endpoint string. What has no scheme at all is likely something else:
// hint says what to give.
func parseString(what, s, hint string) (url.Endpoint, error) {
	u, err := url.Parse(s)
	var wrong *url.Error
	switch {
	case isTCP(s):
		return u, badUsage("%s %s: %s", what, s, overTCPAlone(hint))
	case strings.HasPrefix(s, "rdma:"):
		return u, badUsage("%s %s: that is an address of nfs and rpcinfo, and no endpoint string of DG/RDMA: %s", what, s, hint)
	case err != nil && placeLike(s) != "":
		return u, badUsage("%s %s%s", what, s, didYouMean(placeLike(s)))
	case errors.As(err, &wrong) && wrong.Offset == 0:
		return u, badUsage("%s: %w; %s", what, err, hint)
	case err != nil:
		return u, badUsage("%s: %w", what, err)
	}
	for key, value := range u.Options.All() {
		switch _, err := checkOption(u, key, value); {
		case errors.Is(err, dgrdma.ErrKey):
			return u, badUsage("%w", err) // it names the file, which a flag may have put there
		case err != nil:
			return u, badUsage("%s: %w", what, err)
		}
	}
	return u, nil
}

// checkOption returns what an option of an endpoint stands for, and why that does not open
// with it.
func checkOption(u url.Endpoint, key, value string) (meaning string, err error) {
	meaning, err = dgrdma.CheckOption(key, value)
	wire := settings.OverUDP
	if u.Scheme == url.Ether {
		wire = settings.OverEther
	}
	if s := settings.OfOption(key); err == nil && s.Wire != "" && s.Wire != wire {
		err = fmt.Errorf("dgrdma: endpoint string says %s=%s, which means something over %s and nothing over %s: leave it out", key, value, s.Wire, wire)
	}
	return meaning, err
}

// parsePeer reads where a peer is that is dialed. Over UDP its address is enough.
func parsePeer(what, s string) (url.Endpoint, error) {
	u, err := parseString(what, s, "give udp:HOST:PORT, or the URL that the other side printed")
	if err == nil {
		err = onePlace(what, s, u)
	}
	if err != nil {
		return u, err
	}
	if !u.Reachable() || !u.Complete() && u.Scheme != url.UDP {
		return u, badUsage("%s %s: %s", what, s, needPeer(u))
	}
	return u, nil
}

// needPeer says what of a peer is needed that its string does not have.
func needPeer(u url.Endpoint) string {
	if u.Scheme == url.UDP {
		return "need udp:HOST:PORT, or what the other side prints"
	}
	return "over Ethernet need the complete string that the other side prints"
}

// onePlace refuses what stands for many places.
func onePlace(what, s string, u url.Endpoint) error {
	if ip := u.Addr.Addr(); ip.IsUnspecified() {
		return badUsage("%s %s: %v stands for all addresses of a machine: name the one by which you reach the other side's", what, s, ip)
	}
	return nil
}

// parseComplete reads where a peer is that is not asked.
func parseComplete(what, s string) (url.Endpoint, error) {
	u, err := parseString(what, s, "give the URL that the other side printed")
	if err == nil {
		err = onePlace(what, s, u)
	}
	if err != nil {
		return u, err
	}
	if !u.Complete() || !u.Reachable() {
		return u, badUsage("%s %s: need the complete string that the other side prints, with address and ;<size>.<id>.<max>", what, s)
	}
	return u, nil
}

// parseEnds reads whom to write to, and from where.
func parseEnds(ctx context.Context, stderr io.Writer, to, from string) (local, peer url.Endpoint, err error) {
	if peer, err = parsePeer("--to", to); err != nil {
		return local, peer, err
	}
	return endsFor(ctx, stderr, from, peer)
}

// endsFor returns the local endpoint from which a peer is reached, and the peer as it is
// dialed: complete. Options given with the peer are the local endpoint's, unless it has its own,
// but for the profile.
func endsFor(ctx context.Context, stderr io.Writer, from string, to url.Endpoint) (local, peer url.Endpoint, err error) {
	return endsAs(ctx, stderr, from, 0, to)
}

// endsAs is endsFor with the id that the local endpoint has, or 0: that of its string, or any.
func endsAs(ctx context.Context, stderr io.Writer, from string, id idFlag, to url.Endpoint) (local, peer url.Endpoint, err error) {
	if local, err = parseFrom(from, to); err == nil {
		err = id.sayOnce(local)
	}
	if err != nil {
		return local, to, err
	}
	local.ID = cmp.Or(local.ID, uint16(id))
	peer = to
	for key, value := range to.Options.All() {
		if key == settings.Profile.Option {
			continue
		}
		peer.Options = peer.Options.Without(key)
		if _, given := local.Options.Get(key); !given {
			local.Options = local.Options.With(key, value)
		}
	}
	if peer, err = found(ctx, stderr, local, peer); err != nil {
		return local, peer, err
	}
	return local, peer, fitsWay(local, peer)
}

// parseFrom reads the local endpoint from which a peer is reached.
func parseFrom(local string, peer url.Endpoint) (url.Endpoint, error) {
	if local == "" {
		if local = "udp"; peer.Scheme == url.Ether {
			return url.Endpoint{}, badUsage("the peer is an Ethernet endpoint: which interface reaches it? Add --local ether:NAME")
		}
	}
	u, err := parseLocal("local", local)
	if err != nil {
		return u, err
	}
	if u.Scheme != peer.Scheme {
		return u, badUsage("--local is on another wire (%v) than the peer (%v)", u.Scheme, peer.Scheme)
	}
	return u, nil
}

// found returns a peer's complete string, with an address: the name of its host is looked up, and
// who gave no size and id has the peer asked for them, from where the local endpoint will be.
func found(ctx context.Context, stderr io.Writer, local, peer url.Endpoint) (url.Endpoint, error) {
	if peer.Complete() && peer.Host == "" {
		return peer, nil
	}
	// A port is free again when this endpoint is closed, but need not be then. So it asks from any,
	// unless the local endpoint may be one that the peer knows by its port and id: one that serves
	// named peers only answers no other.
	from, id := url.Endpoint{Scheme: local.Scheme, Dialect: url.Short, Host: local.Host, Addr: netip.AddrPortFrom(local.Addr.Addr(), 0)}, dgrdma.EndpointID(0)
	if local.Addr.Port() != 0 && local.ID != 0 {
		from.Addr, id = local.Addr, dgrdma.EndpointID(local.ID)
	}
	for _, s := range []*settings.Setting{settings.GiveUp, settings.KeyFile} {
		if said, given := local.Options.Get(s.Option); given {
			from.Options = from.Options.With(s.Option, said)
		}
	}
	e, err := dgrdma.Open(from.String(), &dgrdma.Config{ID: id, Memory: new(dgrdma.Region)})
	if err != nil {
		return peer, err
	}
	defer e.Close()
	stop := sayUnheard(stderr, e, local, peer)
	p, err := e.LookupPeer(ctx, peer.String())
	told := stop()
	if err = orTold(err, told, peer); err != nil {
		if errors.Is(err, dgrdma.ErrPeerDown) && !saysAll(err) && id == 0 {
			err = fmt.Errorf("%w. Where only named peers are served, --local has to be one of them, with its port and id", err)
		}
		return peer, err
	}
	if p.Size == 0 {
		return peer, fmt.Errorf("endpoint %d at %v has neither memory nor links: nothing can be sent to it", p.ID, p.Addr)
	}
	peer.Host, peer.Addr, peer.ID, peer.Size = "", p.Addr.AddrPort(), uint16(p.ID), p.Size
	if peer.Dialect == url.Short {
		peer.Dialect = url.Spec // which has a place for them
	}
	return peer, nil
}

// idsBeside returns the first of n consecutive endpoint ids that leaves out
// another: random, so that clients of one server seldom have the same.
func idsBeside(taken uint16, n int) dgrdma.EndpointID {
	for {
		first := 1 + rand.IntN(65535-n)
		if int(taken) < first || int(taken) >= first+n {
			return dgrdma.EndpointID(first)
		}
	}
}

// wireName is udp or ether.
func wireName(u url.Endpoint) string {
	if u.Scheme == url.Ether {
		return "ether"
	}
	return "udp"
}
