package bench

import (
	"net/netip"
	"testing"
	"time"
)

func netAddr(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		t.Fatal(err)
	}
	return ap
}

// TestParseProcessors: what tasks took, and other machines, and all there was; guests' time is
// not counted twice, and what is no such line tells nothing.
func TestParseProcessors(t *testing.T) {
	got := parseProcessors("cpu  100 20 30 1000 40 5 6 7 90 9")
	if want := (Processors{1570 * time.Millisecond, 12080 * time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, line := range []string{"", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8 9 10", "cpu a 2 3 4 5 6 7 8", "intr 1 2 3 4 5 6 7 8"} {
		if got := parseProcessors(line); got != (Processors{}) {
			t.Errorf("%q: %+v", line, got)
		}
	}
	if now := ReadProcessors(); now.Taken <= 0 || now.Had <= now.Taken {
		t.Errorf("%+v", now)
	}
}

// TestOthers: what is at the other end of a run is no other, unless it is on another machine.
func TestOthers(t *testing.T) {
	here := Counts{CPU: 3, Machine: 5, Process: 6, MachineCPU: 9, MachineTime: 10}
	for _, c := range []struct {
		name  string
		there Counts
		want  float64
		busy  bool
	}{
		{"in the same process", Counts{CPU: 3, Machine: 5, Process: 6}, 0.6, true},
		{"on the same machine", Counts{CPU: 6, Machine: 5, Process: 7}, 0, false},
		{"on the same machine, which is busy", Counts{CPU: 2, Machine: 5, Process: 7}, 0.4, true},
		{"on another one", Counts{CPU: 6, Machine: 4, Process: 7}, 0.6, true},
		{"more was counted for us than for all", Counts{CPU: 60, Machine: 5, Process: 7}, 0, false},
	} {
		got := othersBeside(&here, &c.there)
		if diff := got - c.want; diff > 1e-9 || diff < -1e-9 || (Machine{Others: got}).Busy() != c.busy {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := othersBeside(new(Counts), &here); got >= 0 || (Machine{Others: got}).Busy() {
		t.Errorf("%v of what nobody measured", got)
	}
}

// TestSpread: an even number has the middle of two as its median, and none has nothing.
func TestSpread(t *testing.T) {
	o := NewOutcome()
	if s := o.Spread(Contender{Carrier: TCP}, Turn.PerSecond); s != (Spread{}) {
		t.Errorf("%+v", s)
	}
	for _, n := range []uint64{30, 10, 20, 1000} {
		o.Turns = append(o.Turns, Turn{Contender: Contender{Carrier: TCP}, Bytes: n, Took: time.Second}, Turn{Contender: Contender{Carrier: TLS}, Bytes: 1, Took: time.Second})
	}
	o.Turns = append(o.Turns, Turn{Contender: Contender{Carrier: TLS}, Bytes: 5}) // in no time
	if s := o.Spread(Contender{Carrier: TCP}, Turn.PerSecond); s != (Spread{4, 25, 10, 1000}) {
		t.Errorf("%+v", s)
	}
	if s := o.Spread(Contender{Carrier: TLS}, Turn.PerSecond); s != (Spread{5, 1, 0, 1}) {
		t.Errorf("%+v", s)
	}
}
