package endpoint

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
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
		for _, chunk := range []int{1, 4, 8, 16} {
			for _, final := range []int{1, 16} {
				room := (max(chunk, final) + 7) &^ 7
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

// TestProfileNames: each preset is known by the name that it has.
func TestProfileNames(t *testing.T) {
	for _, name := range settings.Profile.Words {
		for _, udp := range []bool{false, true} {
			if p, err := ProfileByName(name, udp); err != nil || p.Name != name {
				t.Errorf("%q is %q: %v", name, p.Name, err)
			}
		}
	}
}

// TestProfileLimits: a profile has values up to their limits and none beyond, and the error
// names the value and the limit.
func TestProfileLimits(t *testing.T) {
	const most, half = ack.MaxWindow, ack.MaxHistory / 2
	for _, c := range []struct {
		name      string
		set       func(p *Profile, n int)
		good, bad []int
		says      string
	}{
		{"window", func(p *Profile, n int) { p.Window = n }, []int{1, most}, []int{-1, 0, most + 1}, fmt.Sprintf("need 1 to %d frames", most)},
		{"span", func(p *Profile, n int) { p.Window, p.Span = 100, n }, []int{100, most}, []int{99, most + 1}, fmt.Sprintf("need 100 (the window) to %d ids", most)},
		{"history", func(p *Profile, n int) { p.History, p.Ahead, p.Tagged = n, 0, 0 }, []int{1, 2, ack.MaxHistory}, []int{-1, 0, 3, 2 * ack.MaxHistory},
			fmt.Sprintf("need a power of two up to %d", ack.MaxHistory)},
		{"ids ahead", func(p *Profile, n int) { p.Ahead = n }, []int{0, half}, []int{-1, half + 1}, "need 0 to half of the history"},
		{"ids tagged", func(p *Profile, n int) { p.Tagged = n }, []int{0, 1, 2, ack.MaxHistory}, []int{-1, 3, 2 * ack.MaxHistory}, "need a power of two up to the history"},
		{"chunk", func(p *Profile, n int) { p.Chunk = n }, []int{1, 16}, []int{-1, 0, 24}, "chunk and final are powers of two"},
		{"final", func(p *Profile, n int) { p.Final = n }, []int{1, 16}, []int{-1, 0, 24}, "chunk and final are powers of two"},
		{"address multiple", func(p *Profile, n int) { p.AddressMultiple = n }, []int{1, 24}, []int{-1, 0}, "the address multiple is at least 1"},
		{"bytes a second", func(p *Profile, n int) { p.PeerBuffer, p.Drain = 1<<20, n }, []int{0, 1}, []int{-1}, "-1 bytes a second"},
		{"a buffer of", func(p *Profile, n int) { p.PeerBuffer, p.Drain = n, 1 }, []int{16384}, []int{0, 16383}, "need a buffer of 16384 or more"},
		{"open transactions", func(p *Profile, n int) { p.OpenTransactions = n }, []int{1, closedTransactions / 2}, []int{-1, 0, closedTransactions/2 + 1},
			fmt.Sprintf("need 1 to %d", closedTransactions/2)},
	} {
		for _, n := range c.good {
			p := Native()
			if c.set(&p, n); p.check() != nil {
				t.Errorf("%s %d: %v", c.name, n, p.check())
			}
		}
		for _, n := range c.bad {
			p := Native()
			c.set(&p, n)
			if err := p.check(); err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), fmt.Sprint(n)) && c.says[0] == 'n' {
				t.Errorf("%s %d: %v, want %q", c.name, n, err, c.says)
			}
		}
	}
	if p := (Profile{Name: "short", Window: 1, Span: 1, History: 1, Chunk: 1, Final: 1, AddressMultiple: 1, OpenTransactions: 1, PeerBuffer: 1}); p.check() != nil {
		t.Errorf("a buffer without a rate is no matter: %v", p.check())
	}
}

// TestFirstIDs: a peer without introduction takes none of our first ids for a copy: they
// are 1 to lastFirst, all of them; to one that looks ids up by remainder, all with the same.
func TestFirstIDs(t *testing.T) {
	for _, table := range []int{0, 256} {
		p := Profile{SlotTable: table}
		step := ack.Wide(max(table, 1))
		found := make(map[ack.Wide]bool)
		for random := range ack.Wide(1 << 16) {
			for _, r := range []ack.Wide{random, 1<<32 - 1 - random} {
				first := p.begin(r)
				if first < 1 || first > lastFirst || first%step != 1%step {
					t.Fatalf("table of %d, random number %d: first id %d", table, r, first)
				}
				found[first] = true
			}
		}
		if len(found) != int(lastFirst/step) {
			t.Errorf("table of %d: %d first ids, want %d", table, len(found), lastFirst/step)
		}
	}
}

// TestControllers: whom to pace is told by its profile, small windows are fixed, and others
// adapt; but who brings a controller has that.
func TestControllers(t *testing.T) {
	var own ack.Controller
	brings := Config{NewController: func(int) ack.Controller { return own }}
	for _, c := range []struct {
		profile Profile
		want    ack.Controller
	}{
		{Native(), &ack.Adaptive{}}, {FPGA(), &ack.FixedWindow{}}, {OpenCPI(false), &ack.FixedWindow{}}, {OpenCPI(true), &ack.FixedWindow{}},
		{Legacy(false), &ack.FixedWindow{}}, {OpenCPI2(), &ack.Pacer{}},
	} {
		for _, cfg := range []*Config{{}, &brings} {
			own = nil
			if got := cfg.controller(&c.profile, 1490); reflect.TypeOf(got) != reflect.TypeOf(c.want) {
				t.Errorf("%s: a controller of type %T, want %T", c.profile.Name, got, c.want)
			}
		}
		own = &ack.FixedWindow{}
		if got := brings.controller(&c.profile, 1490); got != own {
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

// TestStandstill checks for how long the second driver may stand still, with which buffer, at which pace (O2).
func TestStandstill(t *testing.T) {
	driver, unpaced, quick := OpenCPI2(), OpenCPI(true), OpenCPI2()
	quick.Drain = 200_000_000
	for _, x := range []struct {
		name       string
		p          Profile
		buffer     int
		still      time.Duration
		drain, has int
	}{
		{"default", driver, 0, 53248 * time.Microsecond, 2_000_000, 212_992},
		{"small", driver, 16384, 53248 * time.Microsecond, 153_846, 16384},
		{"twice as large", driver, 2 * 212_992, 53248 * time.Microsecond, 4_000_000, 2 * 212_992},
		{"so large that it cannot take as much", driver, 1 << 30, 10737418 * time.Microsecond, dg2Most, 1 << 30},
		{"chosen", quick, 2 * 212_992, 1064960 * time.Nanosecond, 200_000_000, 2 * 212_992},
		{"acknowledges", unpaced, 1 << 20, 0, 0, 0},
	} {
		cfg := Config{Profile: &x.p, PeerBuffer: x.buffer}
		p, err := cfg.profileFor(Peer{ID: 1})
		if err != nil {
			t.Fatal(err)
		}
		if d := (p.Standstill() - x.still).Abs(); d > time.Microsecond || p.Drain != x.drain || p.PeerBuffer != x.has {
			t.Errorf("%s: %d bytes a second, a buffer of %d, %v", x.name, p.Drain, p.PeerBuffer, p.Standstill())
		}
	}
}
