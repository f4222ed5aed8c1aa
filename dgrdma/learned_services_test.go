package dgrdma

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestLearnedForServices checks that a peer that is learned for a service alone may not write into
// the memory, is told so before it tries, and has refused what it sends there all the same; and
// that one that the program connects or accepts may.
func TestLearnedForServices(t *testing.T) {
	for name, admit := range map[string]func(e *Endpoint) error{
		"connected": func(e *Endpoint) error { _, err := e.Connect(Peer{ID: 3, Addr: simnet.Addr(3)}); return err },
		"accepted":  func(e *Endpoint) error { e.AcceptAny(true); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{b: Config{GiveUp: time.Second}})
				defer p.close()
				there := newShelf("post", 1<<16)
				base := serve(t, p.b, there)
				guest := p.open(simnet.Addr(3), &Config{ID: 3, GiveUp: time.Second, Memory: &Region{}})
				defer guest.Close()
				here := newShelf("post", 1<<16)
				serve(t, guest, here)
				toB := p.connect(guest, Peer{ID: 2, Addr: addrB})
				if err := toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); !errors.Is(err, ErrPeerDown) {
					t.Errorf("an unknown source: %v", err)
				}
				p.b.Welcome(true)
				p.b.Welcome(true)
				p.b.Welcome(false)
				toB.Reset(0)
				flow := here.channel(0).Flow()
				if err := settle(t, flow, write(base+MailSize, []byte("parcel"), base+MailSize, 1)); err != nil || !bytes.HasPrefix(there.bytes, []byte("parcel")) {
					t.Errorf("a guest: %v, %q", err, there.bytes[:8])
				}
				if err := toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); !errors.Is(err, ErrNoService) {
					t.Errorf("a guest writes into memory: %v", err)
				}
				if err := settle(t, flow, write(64, []byte("data"), 0, 1)); !errors.Is(err, ErrPeerDown) {
					t.Errorf("a guest that does not ask: %v", err)
				}
				if !bytes.Equal(p.memB.Bytes(), make([]byte, 1<<20)) {
					t.Error("the memory was written into")
				}
				toB.Reset(0)
				if err := admit(p.b); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if err := toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); err != nil || string(p.memB.Bytes()[64:68]) != "data" {
					t.Errorf("no guest any more: %v", err)
				}
				p.b.AcceptAny(false)
				p.b.Welcome(false)
				late := p.open(simnet.Addr(4), &Config{ID: 4, GiveUp: time.Second})
				defer late.Close()
				if err := p.connect(late, Peer{ID: 2, Addr: addrB}).Write(t.Context(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
					t.Errorf("an unknown source when none is welcome: %v", err)
				}
			})
		})
	}
}

// TestConnectOnAnotherWire checks that a connection to another wire is refused at once, and one to
// nowhere as well.
func TestConnectOnAnotherWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		if _, err := p.a.Connect(Peer{ID: 5}); err == nil || !strings.Contains(err.Error(), "no address") {
			t.Errorf("connected to no address: %v", err)
		}
		if _, err := p.a.Connect(Peer{ID: 5, Addr: transport.UDPAddr(netip.MustParseAddrPort("127.0.0.1:7100"))}); err == nil {
			t.Error("connected to an address of UDP on a wire of Ethernet addresses")
		}
	})
}

// TestFenceThatIsUrgent checks that an urgent fence waits like any other.
func TestFenceThatIsUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: 10 * time.Millisecond}})
		defer p.close()
		var f finishing
		for _, x := range []*Transaction{
			{Completion: Word(0, 1), Done: f.as("first")}, {Completion: Word(0, 2), Fence: true, Urgent: true, Done: f.as("fenced")},
		} {
			if err := p.toB.Post(x); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if d := f.at["fenced"].Sub(f.at["first"]); d < 20*time.Millisecond {
			t.Errorf("a fenced transaction was done %v behind the one before it", d)
		}
	})
}

// TestConnectedServicePeerIsTold checks that a peer that was learned for services and that the program
// connects to hears at once that it may write into the memory, though nothing else is sent to it.
func TestConnectedServicePeerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		serve(t, p.b, newShelf("post", 1<<16))
		p.b.Welcome(true)
		guest := p.open(simnet.Addr(3), &Config{ID: 3, Memory: &Region{}})
		defer guest.Close()
		serve(t, guest, newShelf("post", 1<<16))
		toB := p.connect(guest, Peer{ID: 2, Addr: addrB})
		time.Sleep(time.Minute)
		if err := toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); !errors.Is(err, ErrNoService) {
			t.Fatalf("a guest writes into memory: %v", err)
		}
		p.connect(p.b, Peer{ID: 3, Addr: simnet.Addr(3)})
		time.Sleep(time.Second)
		if err := toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); err != nil || string(p.memB.Bytes()[64:68]) != "data" {
			t.Errorf("who is connected: %v", err)
		}
	})
}
