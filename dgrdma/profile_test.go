package dgrdma

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/congestion"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestProfileWithoutRoom: frames too short for one message are an error of
// Connect, not a panic of Post.
func TestProfileWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		e, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		const headers = frame.HeaderSize + frame.MessageHeaderSize
		for _, chunk := range []int{1, 4, 8, 16, 32} {
			for _, final := range []int{1, 16} {
				if final > chunk {
					continue
				}
				room := (chunk + 7) &^ 7
				for _, size := range []int{1, 20, headers, headers + room - 1, headers + room} {
					prof := OpenCPI(false)
					prof.MaxFrame, prof.Chunk, prof.Final = size, chunk, final
					c, err := e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
					if (err == nil) != (size == headers+room) {
						t.Errorf("frames of %d bytes with data in chunks of %d, the last of %d: %v", size, chunk, final, err)
					}
					if err == nil {
						c.Close()
					}
				}
			}
		}
	})
}

// TestWireTooNarrow: an endpoint has no longer frames than its wire, whatever it is told to.
func TestWireTooNarrow(t *testing.T) {
	if _, err := (&Config{ID: 1, MTU: 1500}).withDefaults(transport.Caps{MTU: settings.LeastFrame - 1}); err == nil || !strings.Contains(err.Error(), fmt.Sprint("need at least ", settings.LeastFrame)) {
		t.Errorf("a wire whose frames have no room for data: %v", err)
	}
	for _, most := range []int{settings.LeastFrame, 1400, frame.MaxData, 1 << 20} {
		for _, asked := range []int{0, frame.MaxData} {
			cfg, err := (&Config{ID: 1, MTU: asked}).withDefaults(transport.Caps{MTU: most})
			if want := min(most, frame.MaxData); err != nil || cfg.MTU != want {
				t.Errorf("frames of %d bytes, want %d: %v", cfg.MTU, want, err)
			}
		}
	}
}

// TestControllers: whom to pace is told by its profile, small windows are fixed, and others
// adapt; but who brings a controller has that.
func TestControllers(t *testing.T) {
	var own ack.Controller
	brings := Config{Entropy: systemEntropy, NewController: func(int) ack.Controller { return own }}
	for name, want := range map[Congestion]ack.Controller{
		"": &congestion.ByPath{}, CongestionAuto: &congestion.ByPath{}, CongestionBBR: &congestion.BBR{}, CongestionAdaptive: &ack.Adaptive{}, CongestionFixed: &ack.FixedWindow{},
	} {
		native, cfg := Native(), Config{Entropy: systemEntropy, Congestion: name}
		if got := cfg.controller(&native, 1490, false); reflect.TypeOf(got) != reflect.TypeOf(want) {
			t.Errorf("%q: a controller of type %T, want %T", name, got, want)
		}
	}
	for _, c := range []struct {
		profile Profile
		want    ack.Controller
	}{
		{Native(), &congestion.ByPath{}}, {FPGA(), &ack.FixedWindow{}}, {OpenCPI(false), &ack.FixedWindow{}}, {OpenCPI(true), &ack.FixedWindow{}},
		{Legacy(false), &ack.FixedWindow{}}, {OpenCPI2(), &ack.Pacer{}},
	} {
		for _, cfg := range []*Config{{Entropy: systemEntropy}, &brings} {
			own = nil
			if got := cfg.controller(&c.profile, 1490, false); reflect.TypeOf(got) != reflect.TypeOf(c.want) {
				t.Errorf("%s: a controller of type %T, want %T", c.profile.Name, got, c.want)
			}
		}
		own = &ack.FixedWindow{}
		if got := brings.controller(&c.profile, 1490, false); got != own {
			t.Errorf("%s: not the controller that was brought", c.profile.Name)
		}
	}
}

// TestOverrides: a configuration's window and first id replace the profile's, but for
// profiles that insist on a first id, and the span of ids has room for the window.
func TestOverrides(t *testing.T) {
	opencpi, fpga := OpenCPI(false), FPGA()
	for _, c := range []struct {
		profile      Profile
		cfg          Config
		window, span int
		first        frame.Seq
	}{
		{opencpi, Config{}, opencpi.Window, opencpi.Span, 0},
		{opencpi, Config{Window: 1, FirstFrame: 1}, 1, opencpi.Span, 1},
		{opencpi, Config{Window: 1000, FirstFrame: 9}, 1000, 1000, 9},
		{fpga, Config{FirstFrame: 9}, fpga.Window, fpga.Span, 1},
	} {
		for _, peer := range []Peer{{Profile: &c.profile}, {}} {
			cfg := c.cfg
			if peer.Profile == nil {
				cfg.Profile = &c.profile
			} else {
				cfg.Profile = new(Native())
			}
			if p, err := cfg.profileFor(peer); err != nil || p.Name != c.profile.Name || p.Window != c.window || p.Span != c.span || p.FirstFrame != c.first {
				t.Errorf("%s with window %d and first id %d: window %d, span %d, first id %d; %v",
					c.profile.Name, c.cfg.Window, c.cfg.FirstFrame, p.Window, p.Span, p.FirstFrame, err)
			}
		}
	}
	bad := Native()
	bad.Final = 3
	if _, err := (&Config{Profile: &bad}).profileFor(Peer{}); err == nil {
		t.Error("a profile that cannot be will do")
	}
}

// TestPeersPerHostByDefault: a host has a quarter of the places, and one at least.
func TestPeersPerHostByDefault(t *testing.T) {
	for most, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 7: 1, 8: 2, 40: 10, 65535: 16383} {
		cfg, err := (&Config{ID: 1, MaxPeers: most}).withDefaults(transport.Caps{MTU: 1490})
		if err != nil || cfg.PeersPerHost != want {
			t.Errorf("%d of %d places, want %d: %v", cfg.PeersPerHost, most, want, err)
		}
	}
}

// TestMadeOfWhatCannotBe: a profile beyond its limits makes no connection, and a name that
// no service can have no endpoint.
func TestMadeOfWhatCannotBe(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	wire := n.Attach(addrA, simnet.Config{})
	if e, err := New(wire, &Config{ID: 1, Service: strings.Repeat("long", 100)}); e != nil || err == nil {
		t.Errorf("a service with a long name: %v", err)
	}
	e, err := New(wire, &Config{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	bad := Native()
	bad.Window = 0
	if c, err := e.Connect(Peer{ID: 2, Addr: addrB, Profile: &bad}); c != nil || err == nil || len(e.Conns()) > 0 {
		t.Errorf("a profile without a window: %v", err)
	}
}

// TestConfigIsKept: what a configuration says is not replaced by what it need not say, and
// what it must not say is refused.
func TestConfigIsKept(t *testing.T) {
	profile := OpenCPI(false)
	cfg, err := (&Config{ID: 1, Profile: &profile, Service: "post", PeersPerHost: 7, MaxPeers: 7, Entropy: func() uint32 { return 7 }}).withDefaults(transport.Caps{MTU: 1490})
	if err != nil || cfg.Profile != &profile || cfg.Service != "post" || cfg.PeersPerHost != 7 || cfg.Entropy() != 7 {
		t.Errorf("profile %s, service %s, %d peers of a host, random number %d: %v", cfg.Profile.Name, cfg.Service, cfg.PeersPerHost, cfg.Entropy(), err)
	}
	for _, bad := range []Config{{ID: 1, Queue: -1}, {ID: 1, MaxPeers: 65536}, {ID: 1, GiveUp: 1}} {
		if _, err := bad.withDefaults(transport.Caps{MTU: 1490}); err == nil {
			t.Errorf("queue %d, %d peers, given up after %v: all right", bad.Queue, bad.MaxPeers, bad.GiveUp)
		}
	}
}
