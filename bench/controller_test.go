package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestFastestFirst: the median of several trials decides, not the best of them, and the order of trials does where there is no difference.
func TestFastestFirst(t *testing.T) {
	if got := FastestFirst(nil); got != nil {
		t.Errorf("%v of no trial", got)
	}
	got := FastestFirst([]Trial{
		{"bbr", 3}, {"reno", 8}, {"cubic", 7}, {"idle", 0},
		{"bbr", 90}, {"reno", 7}, {"cubic", 7}, {"idle", 0},
		{"bbr", 2}, {"reno", 1}, {"cubic", 7}, {"idle", 0},
	})
	if want := []Trial{{"reno", 7}, {"cubic", 7}, {"bbr", 3}, {"idle", 0}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSortControllers: the default needs no permission, one that the user may not use is told, and one that is not there is no refusal.
func TestSortControllers(t *testing.T) {
	try := func(name string) error {
		switch name {
		case "reno":
			return nil
		case "dctcp":
			return unix.ENOENT
		}
		return unix.EPERM
	}
	c := sortControllers("bbr", []string{"reno", "bbr", "cubic", "dctcp"}, try)
	if c.Default != "bbr" || !slices.Equal(c.Usable, []string{"bbr", "reno"}) || len(c.Refused) != 1 {
		t.Fatalf("%+v", c)
	}
	if got, want := c.Refused[0].String(), "cubic, which only root may use (net.ipv4.tcp_allowed_congestion_control)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// A system that tells nothing has its default, whatever that is.
	if c := sortControllers("", nil, try); c.Default != "" || c.Usable != nil || c.Refused != nil {
		t.Errorf("%+v", c)
	}
}

// TestControllersOfThisMachine: each that is said to be usable is, and a made-up one is not there.
func TestControllersOfThisMachine(t *testing.T) {
	c := FindControllers()
	if c.Default == "" || len(c.Usable) == 0 || c.Usable[0] != c.Default {
		t.Fatalf("%+v", c)
	}
	for _, name := range c.Usable[1:] {
		if err := tryController(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := tryController("no-such"); !errors.Is(err, unix.ENOENT) {
		t.Error(err)
	}
}

// TestControllerNames: whatever a client sends as one is a name or nothing, and a server sets none that the kernel does not have yet.
func TestControllerNames(t *testing.T) {
	if got := nameController("reno").String(); got != "reno" {
		t.Error(got)
	}
	if got := nameController(strings.Repeat("x", 40)).String(); len(got) != MostControllerName {
		t.Error(got)
	}
	if got := (controllerName{}).String(); got != "" {
		t.Error(got)
	}
	wild := controllerName{0x1b, '[', 0xff}
	if got := wild.String(); strings.ContainsRune(got, 0x1b) {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		sent  controllerName
		known bool
	}{{controllerName{}, true}, {nameController("reno"), true}, {nameController("no-such"), false}, {wild, false}} {
		if _, known := c.sent.served(); known != c.known {
			t.Errorf("%v: %v", c.sent, known)
		}
	}
}

// TestConnectionHasTheController: both ends, from before they are connected.
func TestConnectionHasTheController(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	l, err := TCP.await(dgrdma.UDPAddr(netAddr(t, "127.0.0.1:0")), "", "reno")
	if err != nil {
		t.Fatal(err)
	}
	defer l.stop()
	accepted := make(chan rival, 1)
	go func() {
		r, _ := l.accept(t.Context(), dgrdma.UDPAddr(netAddr(t, "127.0.0.1:9")), make([]byte, 100))
		accepted <- r
	}()
	here := dgrdma.UDPAddr(netAddr(t, "127.0.0.1:0"))
	dialed, err := Contender{TCP, "reno"}.dial(t.Context(), here, here, l.port(), "", make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []rival{dialed, <-accepted} {
		c, err := r.(*stream).streamConn.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		c.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || got != "reno" {
				t.Errorf("%q, %v", got, err)
			}
		})
		defer r.Close()
	}
}

// TestFastestControllerIsChosen: of all that can be used, by trials that count for nothing else, and the machine's default has as many turns.
func TestFastestControllerIsChosen(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	found := FindControllers()
	s, c := sides(t, Plan{Size: 5000, Peers: 1})
	withRivals(s, c, TCP, Raw)
	c.Congestion = ""
	told := 0
	s.Ran = func(r Run) {
		if r.Plan.Carrier == TCP {
			told++
		}
	}
	served := serveOnce(t, s)
	o := NewOutcome()
	if err := errors.Join(c.Run(t.Context(), TurnsBeside*20*time.Millisecond, o), <-served); err != nil {
		t.Fatal(err)
	}
	if len(o.Choices) != 1 {
		t.Fatalf("%+v", o.Choices)
	}
	got := o.Choices[0]
	trials := len(found.Usable)
	if trials == 1 {
		trials = 0
	}
	if got.Carrier != TCP || got.Default != found.Default || !slices.Contains(found.Usable, got.Controller) || len(got.Trials) != trials || got.ClientOnly || len(got.Refused) != len(found.Refused) {
		t.Errorf("%+v of %+v", got, found)
	}
	if trials > 0 && got.Trials[0].Controller != got.Controller {
		t.Errorf("%+v", got)
	}
	contenders := []Contender{{Carrier: TCP}, {}, {Carrier: Raw}}
	if got.Controller != got.Default {
		contenders = append(contenders, Contender{TCP, got.Controller})
	}
	for _, who := range contenders {
		if rate := o.Spread(who, Turn.PerSecond); rate.Turns != TurnsBeside {
			t.Errorf("%+v: %+v", who, rate)
		}
	}
	if want := TurnsBeside * (len(contenders) - 2); told != want || len(o.Turns) != TurnsBeside*len(contenders) {
		t.Errorf("%d turns of TCP were told, want %d; %d turns", told, want, len(o.Turns))
	}
}

// TestControllerThatIsAskedFor has the turns, and one that cannot be had ends it, with others that can.
func TestControllerThatIsAskedFor(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	other := "reno"
	if other == FindControllers().Default {
		t.Log("reno is the default here")
	}
	s, c := sides(t, Plan{Size: 5000, Peers: 1})
	withRivals(s, c, TCP)
	c.Congestion = other
	served := serveOnce(t, s)
	o := NewOutcome()
	if err := errors.Join(c.Run(t.Context(), TurnsBeside*20*time.Millisecond, o), <-served); err != nil {
		t.Fatal(err)
	}
	if len(o.Choices) != 1 || o.Choices[0].Controller != other || o.Choices[0].Trials != nil {
		t.Errorf("%+v", o.Choices)
	}

	s, c = sides(t, Plan{Size: 5000, Peers: 1})
	withRivals(s, c, TCP)
	c.Congestion = "no-such"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, false) }()
	var refused *ControllerError
	err := c.Run(t.Context(), TurnsBeside*20*time.Millisecond, NewOutcome())
	if !errors.As(err, &refused) || !slices.Contains(refused.Usable, "reno") || !strings.Contains(fmt.Sprint(err), "tcp beside it: congestion controller no-such, which this kernel does not have: use one of ") {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServerThatCannotSetTheController carries the stream with its machine's default, and says so.
func TestServerThatCannotSetTheController(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	s, c := sides(t, Plan{Size: 5000, Peers: 1})
	withRivals(s, c, TCP)
	served := serveOnce(t, s)
	o := NewOutcome()
	o.Choices = []Choice{{Carrier: TLS}, {Carrier: TCP}}
	if err := c.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := c.Plan.over(TCP)
	p.MoreRuns, p.Controller = 1, nameController("no-such")
	there, err := c.begin(t.Context(), p)
	if err != nil || there.Uncontrolled != 1 || there.Refused != 0 || there.Port == 0 {
		t.Errorf("%+v, %v", there, err)
	}
	o.uncontrolled(TCP)
	if o.Choices[0].ClientOnly || !o.Choices[1].ClientOnly {
		t.Errorf("%+v", o.Choices)
	}
	c.Endpoint.Close()
	<-served
}
