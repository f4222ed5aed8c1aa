package netns

import (
	"cmp"
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/emulator"
)

func newPath(t *testing.T, text string) *Path {
	t.Helper()
	Require(t)
	cfg, err := emulator.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return NewPath(t, 1500, cfg)
}

// roundTrips returns those of datagrams that come back one by one, and the share that did not come.
func roundTrips(t *testing.T, p *Path, count int, patience time.Duration) (trips []time.Duration, lost int) {
	t.Helper()
	return roundTripsOf(t, echoed(t, p), count, patience)
}

// echoed returns a socket at one end of a path to one at the other end that sends back what comes.
func echoed(t *testing.T, p *Path) (client *net.UDPConn) {
	t.Helper()
	var server *net.UDPConn
	var err error
	p.Pair[1].In(func() { server, err = net.ListenUDP("udp", &net.UDPAddr{IP: ipv4(1)}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := server.ReadFromUDP(buf)
			if err != nil {
				return
			}
			server.WriteToUDP(buf[:n], from)
		}
	}()
	p.Pair[0].In(func() { client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// roundTripsOf sends datagrams one after the other, and waits for each so long. What cannot be sent is lost.
func roundTripsOf(t *testing.T, client *net.UDPConn, count int, patience time.Duration) (trips []time.Duration, lost int) {
	t.Helper()
	buf := make([]byte, 100)
	for range count {
		began := time.Now()
		if _, err := client.Write([]byte("ping")); err != nil {
			lost++
			continue
		}
		client.SetReadDeadline(began.Add(patience))
		if _, err := client.Read(buf); err != nil {
			lost++
			continue
		}
		trips = append(trips, time.Since(began))
	}
	return trips, lost
}

// stream sends over TCP with a congestion controller for a while, and returns the rate in bit/s at which
// bytes came in the second half.
func stream(t *testing.T, p *Path, controller string, long time.Duration) float64 {
	t.Helper()
	var l net.Listener
	var err error
	p.Pair[1].In(func() { l, err = net.Listen("tcp", net.JoinHostPort(IPv4(1).String(), "0")) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rate := make(chan float64, 1)
	go func() {
		defer close(rate)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf, began, half := make([]byte, 1<<16), time.Now(), 0
		for {
			n, err := c.Read(buf)
			if time.Since(began) > long/2 {
				half += n
			}
			if err != nil {
				rate <- float64(half) * 8 / (time.Since(began) - long/2).Seconds()
				return
			}
		}
	}()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		return cmp.Or(raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, controller)
		}), err)
	}}
	var c net.Conn
	p.Pair[0].In(func() { c, err = dialer.Dial("tcp", l.Addr().String()) })
	if err != nil {
		t.Fatal(err)
	}
	c.SetWriteDeadline(time.Now().Add(long))
	for buf := make([]byte, 1<<16); err == nil; {
		_, err = c.Write(buf)
	}
	if ne := net.Error(nil); !errors.As(err, &ne) || !ne.Timeout() {
		t.Fatal(err)
	}
	c.(*net.TCPConn).SetLinger(0) // what has not come by now counts for nothing
	c.Close()
	return <-rate
}

// TestPathRoundTrip checks that a datagram and its answer take the round trip of the path, and a little of
// the machine's time.
func TestPathRoundTrip(t *testing.T) {
	p := newPath(t, "rate=100M,rtt=40ms")
	trips, lost := roundTrips(t, p, 10, 10*time.Second)
	if lost > 0 {
		t.Fatalf("%d lost", lost)
	}
	least := slices.Min(trips)
	t.Logf("least %v, most %v", least, slices.Max(trips))
	if least < 40*time.Millisecond || least > 45*time.Millisecond {
		t.Errorf("least round trip %v of %v, want 40ms", least, trips)
	}
}

// TestPathLoses checks that both ways lose what they are told to.
func TestPathLoses(t *testing.T) {
	p := newPath(t, "rate=1G,rtt=0ms,loss=30%,seed=1")
	_, lost := roundTrips(t, p, 200, 20*time.Millisecond)
	if lost < 60 || lost > 150 { // 51 % on average
		t.Errorf("%d of 200 lost", lost)
	}
	if a, b := p.Router.Way(0), p.Router.Way(1); a.Lost < 30 || b.Lost < 15 || a.Dropped+b.Dropped > 0 {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestPathCarriesTCP checks that a stream of the kernel gets what the bottleneck has, and that its bytes are counted
// as its own.
func TestPathCarriesTCP(t *testing.T) {
	for _, c := range []string{"cubic", "reno"} {
		p := newPath(t, "rate=20M,rtt=20ms,queue=1bdp")
		rate := stream(t, p, c, 3*time.Second)
		way := p.Router.Way(0)
		t.Logf("%s: %.2f Mbit/s, %d of %d dropped, delay %v", c, rate/1e6, way.Dropped, way.Frames, way.Delay95)
		if rate < 0.2*20e6 || // of which it takes 0.96 on a quiet machine
			rate > 20e6 {
			t.Errorf("%s: %.2f Mbit/s of 20", c, rate/1e6)
		}
		if len(way.Flows) != 1 || way.Flows[0].Bytes != way.Bytes || way.Flows[0].Protocol != unix.IPPROTO_TCP {
			t.Errorf("flows %+v of %+v", way.Flows, way.Counts)
		}
		if way.Delay95 > 30*time.Millisecond {
			t.Errorf("a queue of 20 ms has a delay of %v", way.Delay95)
		}
	}
}

// TestPathCloses checks that a path ends twice, and that nothing passes after that.
func TestPathCloses(t *testing.T) {
	p := newPath(t, "rate=1G,rtt=0ms")
	client := echoed(t, p) // before the kernel takes the cables away, which it does in its own time
	p.Router.Close()
	p.Router.Close()
	if _, lost := roundTripsOf(t, client, 1, 10*time.Millisecond); lost != 1 {
		t.Error("a datagram passes a router that is closed")
	}
}
