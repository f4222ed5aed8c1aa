package main

import (
	"testing"
	"time"
)

// clocked are rounds and what time it is.
type clocked struct {
	*rounds
	t   *testing.T
	now time.Time
}

func newClocked(t *testing.T) *clocked {
	return &clocked{newRounds(100, pingWait, 0), t, time.Unix(1, 0)}
}

// ping sends the next one.
func (c *clocked) ping() uint32 {
	c.t.Helper()
	n, ok := c.next(c.now)
	if !ok {
		c.t.Fatal("no more pings")
	}
	return n
}

// wantLost expects that the ping is lost after that long, and not before.
func (c *clocked) wantLost(long time.Duration) {
	c.t.Helper()
	if _, lost := c.expire(c.now.Add(long - 1)); lost {
		c.t.Fatalf("lost in less than %v", long)
	}
	c.now = c.now.Add(long)
	if waited, lost := c.expire(c.now); !lost || waited != long {
		c.t.Fatalf("after %v: lost is %v, waited %v", long, lost, waited)
	}
}

func (c *clocked) answered(number uint32, after time.Duration) bool {
	c.now = c.now.Add(after)
	return c.answer(number, c.now)
}

// TestPingPatience checks that an answer is waited for a second, however many were lost before (N15), or as long as RFC 6298 says where
// round trips are long.
func TestPingPatience(t *testing.T) {
	c := newClocked(t)
	c.ping()
	c.wantLost(time.Second)
	for range 5 {
		c.ping()
		c.wantLost(time.Second)
	}
	if n := c.ping(); !c.answered(n, 10*time.Microsecond) {
		t.Fatal("not the one that was waited for")
	}
	c.ping()
	c.wantLost(time.Second) // short round trips make it no shorter
	c = newClocked(t)
	for range 100 {
		if n := c.ping(); !c.answered(n, 900*time.Millisecond) {
			t.Fatal("not the one that was waited for")
		}
	}
	c.answered(c.ping(), 950*time.Millisecond)
	if c.patience() < time.Second || c.patience() > 1100*time.Millisecond {
		t.Errorf("patience %v with round trips of 900 ms", c.patience())
	}
}

// TestPingPatienceGrowsWithRoundTrips: where answers take longer than the first
// patience, the late ones teach it.
func TestPingPatienceGrowsWithRoundTrips(t *testing.T) {
	const trip = 5 * time.Second
	c := newClocked(t)
	type flying struct {
		number uint32
		at     time.Time
	}
	var wire []flying
	send := func() { wire = append(wire, flying{c.ping(), c.now.Add(trip)}) }
	send()
	for c.answeredInTime() < 10 {
		if c.now = wire[0].at; c.lostAt.Before(c.now) {
			c.now = c.lostAt
			c.expire(c.now)
			send()
			continue
		}
		number := wire[0].number
		wire = wire[1:]
		if c.answer(number, c.now) {
			send()
		}
	}
	if c.lost > uint32(trip/pingWait) { // those that were sent before the first answer came
		t.Errorf("%d lost with a round trip of %v", c.lost, trip)
	}
	if int(c.lost)+c.answeredInTime() != int(c.number)-1 {
		t.Errorf("%d sent, %d lost, %d answered", c.number, c.lost, c.answeredInTime())
	}
}

func (c *clocked) answeredInTime() int { return int(c.rounds.answered) }

// TestPingRoundsEnd: through when every ping was answered or lost; what comes
// later changes nothing.
func TestPingRoundsEnd(t *testing.T) {
	c := newClocked(t)
	for range 100 + 99 {
		if n := c.ping(); c.through() || !c.answered(n, time.Microsecond) || c.through() {
			t.Fatal("through too early")
		}
	}
	n := c.ping()
	c.now = c.now.Add(time.Hour)
	if _, lost := c.expire(c.now); !lost || !c.through() {
		t.Error("not through when the last one is lost")
	}
	c.answer(n, c.now)
	c.answer(12345, c.now)
	if _, more := c.next(c.now); more || c.lost != 1 || c.measured() != 99 || c.answeredInTime() != 100+99 {
		t.Errorf("more: %v, %d lost, %d measured, %d answered", more, c.lost, c.measured(), c.answeredInTime())
	}
}

// TestPingInterval: one per interval, at the times that the first one sets; of what is late no
// more than one is made up for, a lost one holds up the others, and no silence is seen while nothing is asked.
func TestPingInterval(t *testing.T) {
	const interval = 10 * time.Second
	c := &clocked{newRounds(100, pingWait, interval), t, time.Unix(1, 0)}
	soon := func() {
		t.Helper()
		if n, more := c.next(c.now); more {
			t.Fatalf("ping %d is too early", n)
		}
	}
	due := func(in time.Duration) {
		t.Helper()
		if wait, waits := c.dueIn(c.now); !waits || wait != in {
			t.Errorf("due in %v, %v; want %v", wait, waits, in)
		}
		c.now = c.now.Add(in - 1)
		soon()
		c.now = c.now.Add(1)
	}
	if c.answered(c.ping(), time.Millisecond); c.warmUp != 1 || c.measured() != 0 {
		t.Error("the first one is measured")
	}
	c.answered(c.ping(), time.Millisecond) // at once behind the first
	due(interval - time.Millisecond)
	if s := c.silence(c.now); s != 0 {
		t.Errorf("silent for %v, and nothing was asked", s)
	}
	if c.ping(); c.silence(c.now) != 0 {
		t.Error("silence, and it was only asked now")
	}
	c.wantLost(pingWait)
	soon()
	due(interval - pingWait)
	if c.ping(); c.silence(c.now) != interval {
		t.Errorf("silent for %v, want %v", c.silence(c.now), interval)
	}
	c.wantLost(pingWait)
	due(interval - pingWait)
	c.answered(c.ping(), interval+4*time.Second)
	c.answered(c.ping(), time.Millisecond) // late by 4 s
	due(interval - 4*time.Second - time.Millisecond)
	if c.measured() != 3 || c.lost != 2 {
		t.Errorf("%d measured, %d lost", c.measured(), c.lost)
	}
	c.now = c.now.Add(time.Hour)
	c.answered(c.ping(), time.Millisecond)
	due(interval - time.Millisecond) // not one for each interval of that hour
}
