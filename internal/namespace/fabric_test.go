package namespace_test

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/internal/namespace"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestFabric checks that what an end sends comes out at its port and at no other, and that what is written to a
// port arrives at its end.
func TestFabric(t *testing.T) {
	netns.Require(t)
	ends, ports, err := namespace.OpenFabric(1500)
	if err != nil {
		t.Fatal(err)
	}
	for side := range ends {
		defer ends[side].Close()
		defer ports[side].Close()
	}
	carry := func(from int, within time.Duration) (seen []byte) {
		ports[from].SetReadDeadline(time.Now().Add(within))
		buf := make([]byte, 1<<16)
		for {
			n, err := ports[from].Read(buf)
			if err != nil {
				return seen
			}
			seen = append(seen, buf[:n]...)
			if _, err := ports[1-from].Write(buf[:n]); err != nil {
				t.Error(err)
			}
		}
	}
	var there, here *net.UDPConn
	ends[1].In(func() { there, err = net.ListenUDP("udp", &net.UDPAddr{IP: namespace.IPv4(1).AsSlice()}) })
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	ends[0].In(func() { here, err = net.DialUDP("udp", nil, there.LocalAddr().(*net.UDPAddr)) })
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	text := []byte("through the fabric")
	if _, err := here.Write(text); err != nil {
		t.Fatal(err)
	}
	there.SetReadDeadline(time.Now().Add(30 * time.Second))
	got := make(chan []byte, 1)
	go func() {
		buf := make([]byte, 100)
		n, _ := there.Read(buf)
		got <- buf[:n]
	}()
	for {
		// Neighbours have to find each other first: who has the address, and the answer.
		carry(0, 50*time.Millisecond)
		back := carry(1, 50*time.Millisecond)
		if bytes.Contains(back, text) {
			t.Error("it came out at the other port")
		}
		select {
		case b := <-got:
			if !bytes.Equal(b, text) {
				t.Errorf("%q arrived", b)
			}
			return
		default:
		}
	}
}
