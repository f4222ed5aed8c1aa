package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/url"
)

const (
	// soonHeard is how long a peer usually takes at most until something is heard of it. Arbitrary: many round trips.
	soonHeard = 250 * time.Millisecond
	// worthSaying is how long is waited at least where that is said.
	worthSaying = time.Second
	// askedFor is how long a peer is asked for the rest of its string at most, as [dgrdma.Endpoint.LookupPeer] has it.
	askedFor = 3 * time.Second
	// probeTick is how often it is looked whether who was probed was heard meanwhile.
	probeTick = 50 * time.Millisecond
	// unresolved is how long the kernel is waited for at most that looks for a neighbour. By default it asks three times, a second apart.
	unresolved = 5 * time.Second
)

// longUnheard is how long nothing is heard of a peer until that is said where nobody knows why. Not constant for the sake of tests,
// in which a busy machine may take as long.
var longUnheard = 2 * time.Second

// aboutToStart is why somebody is asked again of whom nothing is heard.
const aboutToStart = ", as it may be about to start"

// sayUnheard says on standard error that nothing is heard of the peer of an endpoint, or nothing that can be opened, for how long it
// is asked again, and why, when the system knows. What the system knows anyone on the way could have invented, so nothing else follows
// from it but words. stop ends that, and returns what the system knows, if that was said and nothing was heard since; who waits calls it
// when the wait is over, and may call it again.
func sayUnheard(stderr io.Writer, e *dgrdma.Endpoint, local, peer url.Endpoint) (stop func() error) {
	long := e.GiveUp().String()
	switch {
	case e.GiveUp() < worthSaying:
		return func() error { return nil }
	case !peer.Complete(): // it is asked for the rest
		long = min(askedFor, e.GiveUp()).String()
	}
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	var told error
	go func() {
		defer close(gone)
		otherKey := false
		over := func(within time.Duration) bool {
			select {
			case <-ctx.Done():
				return true
			case <-time.After(within):
				s := e.Stats()
				otherKey = s.RefusedBy(dgrdma.RefusedSeal) > 0
				return s.FramesReceived > s.RefusedBy(dgrdma.RefusedSeal)
			}
		}
		began := time.Now()
		if over(soonHeard) {
			return
		}
		say := func(why error, hope string) {
			fmt.Fprintf(stderr, "%s%s: %v; it is asked again for %s%s\n", cleared(stderr), placeOf(peer), why, long, hope)
		}
		p := openProbe(ctx, local, peer, nil)
		defer p.close()
		for said := false; ; {
			if told = p.told(); told != nil {
				say(told, aboutToStart)
				return
			}
			switch {
			case said || time.Since(began) < longUnheard:
			case otherKey:
				say(errOtherKey, "")
				said = true
			default:
				say(errUnheard, aboutToStart)
				said = true
			}
			if over(probeTick) {
				return
			}
		}
	}()
	return func() error {
		cancel()
		<-gone
		if e.Stats().FramesReceived > 0 {
			return nil // it started meanwhile
		}
		return told
	}
}

// watchUnacknowledged sees what the system is told of a peer that never acknowledges, before anything else is sent to it, and says that
// on standard error. Everything is sent all the same: a firewall that refuses the probe may let the endpoint's frames pass. end waits
// for the system's word for a moment, and as long as it looks for the neighbour, and returns it as an error.
func watchUnacknowledged(ctx context.Context, stderr io.Writer, local, peer url.Endpoint) (end func() error) {
	// A frame to id 0, which no peer has, after the two bytes before each. OpenCPI's second driver looks at no length, so shorter ones are
	// not for it.
	p := openProbe(ctx, local, peer, make([]byte, 2+frame.HeaderSize))
	if p.Conn == nil {
		return func() error { return nil }
	}
	began := time.Now()
	why := make(chan error, 1)
	go func() {
		defer p.close()
		for {
			more := time.Since(began) < soonHeard || time.Since(began) < unresolved && p.held() // before it is looked what was told
			if told := p.told(); told != nil {
				fmt.Fprintf(stderr, "%s%s: %v; everything is sent all the same\n", cleared(stderr), placeOf(peer), told)
				why <- &toldWhy{peer, told, dgrdma.ErrPeerDown}
				return
			}
			select {
			case <-ctx.Done():
				more = false
			case <-time.After(probeTick):
			}
			if !more {
				why <- nil
				return
			}
		}
	}()
	return func() error { return <-why }
}

// cleared returns what clears the line of a terminal, on which progress may be shown.
func cleared(stderr io.Writer) string {
	if isTerminal(stderr) && !isDumb() {
		return "\r\x1b[K"
	}
	return ""
}

var (
	// errUnheard is all that is known where the system was told nothing.
	errUnheard = errors.New("nothing was heard of it so far")
	// errOtherKey is what is known of who answers, and of whom nothing can be opened.
	errOtherKey = errors.New("who is there does not accept our key")
	// errNoListener is what the system is told of a port that nobody has.
	errNoListener = errors.New("nothing listens at that port")
)

// toldWhy is why a peer did not answer, where that was told. All else that could be why would lead astray.
type toldWhy struct {
	peer      url.Endpoint
	told, err error
}

func (e *toldWhy) Error() string {
	check := "is that its address, and is its machine up?"
	if errors.Is(e.told, errNoListener) {
		check = "is the other side started, and is that its port?"
	}
	return fmt.Sprintf("%s: %v, or a firewall says so; %s", placeOf(e.peer), e.told, check)
}
func (e *toldWhy) Unwrap() error { return e.err }

// orTold is why a peer was not reached, in view of what was told meanwhile.
func orTold(err, told error, peer url.Endpoint) error {
	if told != nil && (errors.Is(err, dgrdma.ErrPeerDown) || errors.Is(err, link.ErrNoAnswer)) {
		return &toldWhy{peer, told, err}
	}
	return err
}

// saysAll reports whether an error of a peer that is not reached says why, and what to do. A hint would lead astray.
func saysAll(err error) bool {
	var told *toldWhy
	return errors.Is(err, dgrdma.ErrPeerClosed) || errors.Is(err, dgrdma.ErrNoKey) || errors.Is(err, dgrdma.ErrRefused) || errors.As(err, &told)
}

// placeOf is where a peer is, without the rest of its string.
func placeOf(peer url.Endpoint) string {
	switch {
	case peer.Scheme == url.Ether:
		return peer.MAC.String()
	case peer.Host != "":
		return net.JoinHostPort(peer.Host, strconv.Itoa(int(peer.Addr.Port())))
	}
	return peer.Addr.String()
}

// probe is a socket that is told what becomes of a datagram that was sent to a peer; without one it is told nothing.
type probe struct{ net.Conn }

// openProbe sends a peer over UDP a datagram that does nothing there: an empty one is none of the protocol's.
func openProbe(ctx context.Context, local, peer url.Endpoint, datagram []byte) (p probe) {
	if peer.Scheme != url.UDP {
		return p
	}
	// Else it is not told that nobody finds a host.
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVERR, 1)
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
		})
	}}
	if ip := local.Addr.Addr(); ip.IsValid() && !ip.IsUnspecified() {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0))
	}
	c, err := d.DialContext(ctx, "udp", placeOf(peer))
	if err != nil {
		return p
	}
	c.Write(datagram)
	return probe{c}
}

// held reports whether the kernel still has what was sent, as it looks for the neighbour to whom that goes.
func (p probe) held() (yes bool) {
	c, ok := p.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		yes = err == nil && n > 0
	})
	return yes
}

// told returns why nobody is there, if the system was told within a moment.
func (p probe) told() error {
	if p.Conn == nil {
		return nil
	}
	p.SetReadDeadline(time.Now().Add(time.Millisecond))
	var b [1]byte
	_, err := p.Read(b[:])
	var call *os.SyscallError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return errNoListener
	case errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &call):
		return nil
	}
	return call.Err
}

func (p probe) close() {
	if p.Conn != nil {
		p.Close()
	}
}
