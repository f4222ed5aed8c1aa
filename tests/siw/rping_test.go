package siw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/rping"
)

const rpings = 20

// rpingData is what rping prints of its pings.
func rpingData(what string, size int) (lines []string) {
	b := make([]byte, size)
	for n := range rpings {
		rping.Fill(b, n)
		lines = append(lines, fmt.Sprintf("%s: %s", what, b[:size-1]))
	}
	return lines
}

// wantRping expects that rping has printed the data of all pings.
func wantRping(t *testing.T, out, what string, size int) {
	t.Helper()
	for _, line := range rpingData(what, size) {
		if !strings.Contains(out, line+"\n") {
			t.Fatalf("rping does not say %.60q", line)
		}
	}
}

// Our client pings rdma-core's rping -s.
func TestRpingServer(t *testing.T) {
	for i, c := range []struct {
		name string
		o    verbs.Options
		size int
		set  map[string]string
	}{
		{"CRC", verbs.Options{}, 64, nil},
		{"no CRC", verbs.Options{NoCRC: true}, 64, nil},
		{"large", verbs.Options{}, rping.MaxSize, nil},
		{"large, no CRC", verbs.Options{NoCRC: true}, rping.MaxSize, nil},
		{"peer to peer, by Write", verbs.Options{PeerToPeer: true, Ready: mpa.ReadyWrite}, 64, map[string]string{"peer_to_peer": "1"}},
		{"peer to peer, by Read", verbs.Options{PeerToPeer: true, Ready: mpa.ReadyRead, NoCRC: true}, 64, map[string]string{"peer_to_peer": "1"}},
		{"strict", verbs.Options{Strict: true}, 64, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.set {
				parameter(t, name, value)
			}
			ctx := deadline(t)
			port := 7600 + i
			peer := start(t, fmt.Sprintf("timeout 100 rping -s -a %s -p %d -S %d -v 2>/dev/null", guestAddr, port, c.size))
			listening(t, port)
			h, err := verbs.Open("tcp")
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			client, err := rping.Dial(ctx, h, fmt.Sprintf("tcp:%s:%d", guestAddr, port), c.size, &rping.Options{Verbs: c.o, Wait: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for range rpings {
				if _, err := client.Ping(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if err := client.Close(ctx); err != nil {
				t.Errorf("Close: %v", err)
			}
			out, _ := peer.wait()
			wantRping(t, out, "server ping data", c.size)
		})
	}
}

// rping -s takes its own limit of Reads from the request, and one of revision 1 says none: on siw it then cannot Read, whoever the client is.
func TestRpingServerOfRevision1(t *testing.T) {
	ctx := deadline(t)
	peer := start(t, fmt.Sprintf("timeout 100 rping -s -a %s -p 7650 2>&1", guestAddr))
	listening(t, 7650)
	h, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	client, err := rping.Dial(ctx, h, fmt.Sprintf("tcp:%s:7650", guestAddr), 64, &rping.Options{Verbs: verbs.Options{Revision: 1}, Wait: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Abort()
	if _, err := client.Ping(ctx); !errors.Is(err, verbs.ErrPeerClosed) {
		t.Errorf("the end is %v", err)
	}
	if out, _ := peer.wait(); !strings.Contains(out, "post send error") {
		t.Errorf("rping says %s", out)
	}
}

// rdma-core's rping -c pings our server, and compares.
func TestRpingClient(t *testing.T) {
	for _, c := range []struct {
		name string
		o    verbs.Options
		size int
		set  map[string]string
	}{
		{"CRC, as we want it", verbs.Options{}, 64, map[string]string{"mpa_crc_required": "1"}},
		{"CRC, as siw wants it", verbs.Options{NoCRC: true}, 64, map[string]string{"mpa_crc_required": "1"}},
		{"no CRC", verbs.Options{NoCRC: true}, 64, nil},
		{"large", verbs.Options{NoCRC: true}, rping.MaxSize, nil},
		{"large, CRC", verbs.Options{}, rping.MaxSize, map[string]string{"mpa_crc_required": "1"}},
		{"revision 1", verbs.Options{NoCRC: true}, 1000, map[string]string{"mpa_version": "1"}},
		{"peer to peer, by Write", verbs.Options{NoCRC: true}, 64, map[string]string{"peer_to_peer": "1", "rtr_type": "128"}},
		{"peer to peer, by Read", verbs.Options{NoCRC: true}, 64, map[string]string{"peer_to_peer": "1", "rtr_type": "64"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.set {
				parameter(t, name, value)
			}
			ctx := deadline(t)
			h, err := verbs.Open("tcp:" + hostAddr)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			l, err := h.Listen("0")
			if err != nil {
				t.Fatal(err)
			}
			_, port, _ := strings.Cut(l.Addr().String(), ":")
			peer := start(t, fmt.Sprintf("timeout 100 rping -c -a %s -p %s -C %d -S %d -v -V 2>/dev/null", hostAddr, port, rpings, c.size))
			got, err := takeRping(ctx, l, &rping.Options{Verbs: c.o, Wait: 20 * time.Second})
			out, status := peer.wait()
			if err != nil || status != 0 {
				t.Errorf("%v; rping ended with %d", err, status)
			}
			if want := rpingData("server ping data", c.size); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%d pings arrived, and are not those that rping sends", len(got))
			}
			wantRping(t, out, "ping data", c.size)
		})
	}
}

// takeRping serves one client.
func takeRping(ctx context.Context, l *verbs.Listener, o *rping.Options) (got []string, err error) {
	r, err := l.Accept(ctx)
	if err != nil {
		return nil, err
	}
	s, err := rping.Accept(ctx, r, o)
	if err != nil {
		return nil, err
	}
	for {
		data, err := s.Pong(ctx)
		if err == io.EOF {
			return got, s.Close(ctx)
		}
		if err != nil {
			s.Abort()
			return got, err
		}
		got = append(got, fmt.Sprintf("server ping data: %s", data[:len(data)-1]))
	}
}
