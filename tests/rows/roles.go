package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// roleVariable in the environment makes this program what another row is compared to.
const roleVariable = "DGRDMA_ROWS_ROLE"

// play does what a role does until it is through, or for ever.
func play(role string, args []string) error {
	switch {
	case role == "spin":
		spin()
		return nil
	case role == "echo" && len(args) == 2:
		return echo(args[0], args[1])
	case role == "ping" && len(args) == 3:
		return ping(args[0], args[1], args[2])
	case role == "echo-ring" && len(args) == 1:
		return echoRing(args[0])
	case role == "ping-ring" && len(args) == 3:
		return pingRing(args[0], args[1], args[2])
	case role == "echo-tcp" && len(args) == 1:
		return echoTCP(args[0])
	case role == "ping-tcp" && len(args) == 2:
		return pingTCP(args[0], args[1])
	case role == "echo-verbs" && len(args) == 1:
		return echoVerbs(args[0])
	case role == "ping-verbs" && len(args) == 2:
		return pingVerbs(args[0], args[1])
	case role == "take-streams" && len(args) == 2:
		return takeStreams(args[0], args[1])
	case role == "fill-streams" && len(args) == 3:
		return fillStreams(args[0], args[1], args[2])
	case role == "serve-calls" && len(args) == 1:
		return serveCalls(args[0])
	case role == "call" && len(args) == 6:
		return callFor(args[0], args[1], args[2], args[3], args[4], args[5])
	case role == "drain" && len(args) == 1:
		return drain(args[0])
	case role == "pour" && len(args) == 2:
		return pour(args[0], args[1])
	case role == "path-sink" && len(args) == 2:
		return pathSink(args[0], args[1])
	case role == "path-flow" && len(args) == 5:
		return pathFlow(args[0], args[1], args[2], args[3], args[4])
	}
	return fmt.Errorf("no role %s with %q", role, args)
}

// spin takes all of a processor, until whoever wanted that is gone.
func spin() {
	const look = 1 << 26 // some tens of milliseconds
	parent := os.Getppid()
	for n := 1; n%look != 0 || os.Getppid() == parent; n++ {
	}
}

// How a socket waits.
const (
	sleeping = "sleeping" // in Go's netpoller
	spinning = "spinning" // it asks again at once
)

// pingSize is as long as ping's messages.
const pingSize = 64

// socket is a UDP socket that exchanges one message at a time.
type socket interface {
	receive(b []byte) (n int, from netip.AddrPort, err error)
	send(b []byte, to netip.AddrPort) error
}

type sleeper struct{ *net.UDPConn }

func (s sleeper) receive(b []byte) (int, netip.AddrPort, error) { return s.ReadFromUDPAddrPort(b) }

func (s sleeper) send(b []byte, to netip.AddrPort) error {
	_, err := s.WriteToUDPAddrPort(b, to)
	return err
}

// spinner asks its socket again at once. The socket is connected to whoever pings, which spares the kernel a look for the way.
type spinner struct {
	fd int
	to netip.AddrPort // to whom it is connected
}

func (s *spinner) receive(b []byte) (int, netip.AddrPort, error) {
	for s.to.IsValid() {
		if n, err := unix.Read(s.fd, b); err != unix.EAGAIN && err != unix.EINTR {
			return n, s.to, err
		}
	}
	for {
		n, from, err := unix.Recvfrom(s.fd, b, 0)
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, netip.AddrPort{}, err
		}
		a, known := from.(*unix.SockaddrInet4)
		if !known {
			return 0, netip.AddrPort{}, errors.New("a datagram from no IPv4 address")
		}
		return n, netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)), nil
	}
}

func (s *spinner) send(b []byte, to netip.AddrPort) error {
	if s.to != to {
		if err := unix.Connect(s.fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
			return err
		}
		s.to = to
	}
	_, err := unix.Write(s.fd, b)
	return err
}

func open(how string, at netip.AddrPort) (socket, error) {
	if how == sleeping {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		return sleeper{c}, err
	}
	runtime.LockOSThread()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &spinner{fd: fd}, unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
}

func echo(how, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	s, err := open(how, at)
	if err != nil {
		return err
	}
	for b := make([]byte, pingSize); ; {
		n, from, err := s.receive(b)
		if err == nil {
			err = s.send(b[:n], from)
		}
		if err != nil {
			return err
		}
	}
}

// pingsOf reads a number of pings.
func pingsOf(count string) (n int, err error) {
	if n, err = strconv.Atoi(count); err != nil || n < 1 {
		return 0, fmt.Errorf("no number of pings: %q", count)
	}
	return n, nil
}

// warmUp is how many pings are not counted.
const warmUp = 1000

func ping(how, address, count string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	n, err := pingsOf(count)
	if err != nil {
		return err
	}
	s, err := open(how, netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
	if err != nil {
		return err
	}
	b := make([]byte, pingSize)
	return oneWay(n, func() error {
		err := s.send(b, to)
		if err == nil {
			_, _, err = s.receive(b)
		}
		return err
	})
}

// oneWay times a number of pings, and prints half of the median.
func oneWay(n int, ping func() error) error {
	times := make([]time.Duration, 0, n)
	for i := range warmUp + n {
		began := time.Now()
		if err := ping(); err != nil {
			return err
		}
		if i >= warmUp {
			times = append(times, time.Since(began))
		}
	}
	slices.Sort(times)
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{"p50_us": times[len(times)/2].Seconds() * 1e6 / 2})
}

// pourBlock is how much is read and written at a time.
const pourBlock = 256 << 10

// pour reads a file and writes it to a TCP socket, until the other side has it all.
func pour(to, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	began := time.Now()
	c, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	// Hidden types: io.Copy would have the kernel do it.
	n, err := io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{f}, make([]byte, pourBlock))
	if err != nil {
		return err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		return fmt.Errorf("the other side has not read all: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{"bytes": float64(n), "mb_per_s": float64(n) / 1e6 / time.Since(began).Seconds()})
}

// drain reads one stream to its end.
func drain(at string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	for b := make([]byte, pourBlock); ; {
		if _, err := c.Read(b); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// fill makes a file of that many bytes.
func fill(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = byte(i * 7)
	}
	for left := size; left > 0; left -= int64(len(b)) {
		if _, err := f.Write(b[:min(left, int64(len(b)))]); err != nil {
			return err
		}
	}
	return f.Close()
}
