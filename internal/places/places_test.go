package places

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// guest is a client of a test.
type guest struct {
	place *Place
	did   uint64
	asked bool
	stays bool // though it is asked to leave
}

// enter takes a place, and leaves when it is asked to.
func enter(t *testing.T, r *Room, host string, bytes uint64) (*guest, error) {
	t.Helper()
	p, err := r.Enter(t.Context(), netip.MustParseAddr(host), bytes)
	if err != nil {
		return nil, err
	}
	g := &guest{place: p}
	p.Serve(func() uint64 { return g.did }, func() {
		g.asked = true
		if !g.stays {
			go p.Leave()
		}
	})
	return g, nil
}

func fill(t *testing.T, r *Room, host string, n int) (all []*guest) {
	t.Helper()
	for range n {
		g, err := enter(t, r, host, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	return all
}

func asked(all []*guest) (n int) {
	for _, g := range all {
		if g.asked {
			n++
		}
	}
	return n
}

// TestSilentOnesGiveWay checks that of a full room the client that has been silent for longest gives way, after
// its time and not before, and that one which does something keeps its place (F2).
func TestSilentOnesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Room{Most: 4, Patience: 10 * time.Second}
		all := fill(t, r, "10.0.0.1", 4)
		for range 9 {
			time.Sleep(time.Second)
			all[0].did++
			if _, err := enter(t, r, "10.0.0.1", 0); err != ErrFull {
				t.Fatalf("before its time: %v", err)
			}
		}
		all[1].did++ // late, and once
		if _, err := enter(t, r, "10.0.0.1", 0); err != ErrFull {
			t.Fatalf("before its time: %v", err)
		}
		time.Sleep(time.Second)
		for i := range 2 {
			g, err := enter(t, r, "10.0.0.1", 0)
			if err != nil || asked(all) != i+1 || all[0].asked || all[1].asked {
				t.Fatalf("newcomer %d: %v, %d asked, %v %v", i, err, asked(all), all[0].asked, all[1].asked)
			}
			g.did++
		}
		if _, err := enter(t, r, "10.0.0.1", 0); err != ErrFull || r.Len() != 4 {
			t.Errorf("all are at work: %v, %d there", err, r.Len())
		}
	})
}

// TestHostWithMostGivesWay checks that a host which has all places, busy or not, loses them to others one by one, until each has
// as many, and that one in whose network all addresses are has but one share (F2).
func TestHostWithMostGivesWay(t *testing.T) {
	for name, host := range map[string]func(i int) string{
		"IPv4":                 func(int) string { return "10.0.0.1" },
		"IPv4 mapped":          func(int) string { return "::ffff:10.0.0.1" },
		"IPv6, many addresses": func(i int) string { return fmt.Sprintf("2001:db8:0:1::%x", i+1) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &Room{Most: 8, Patience: 10 * time.Second}
			var all []*guest
			for i := range 8 {
				all = append(all, fill(t, r, host(i), 1)...)
			}
			var others []*guest
			for i := range 4 {
				for _, g := range all {
					g.did++
				}
				g, err := enter(t, r, "10.0.0.2", 0)
				if err != nil || asked(all) != i+1 {
					t.Fatalf("%s: newcomer %d: %v, %d asked", name, i, err, asked(all))
				}
				others = append(others, g)
			}
			if _, err := enter(t, r, "10.0.0.2", 0); err != ErrFull || asked(others) != 0 {
				t.Errorf("%s: beyond its half: %v", name, err)
			}
			if _, err := enter(t, r, host(9), 0); err != ErrFull {
				t.Errorf("%s: the first host again: %v", name, err)
			}
		})
	}
}

// TestAddressWithMostGivesWay checks that of a network of IPv6, which may be one host's or a whole link, an address that has all places
// loses them to others of that network, until each has as many, and that a network with many addresses has no more for that (F2).
func TestAddressWithMostGivesWay(t *testing.T) {
	for _, network := range []string{"fe80::", "2001:db8:0:1::"} {
		synctest.Test(t, func(t *testing.T) {
			r := &Room{Most: 8, Patience: 10 * time.Second}
			all := fill(t, r, network+"1", 8)
			others := fill(t, r, network+"2", 4)
			if _, err := enter(t, r, network+"2", 0); err != ErrFull || asked(all) != 4 || asked(others) != 0 {
				t.Errorf("%s: beyond its half: %v, %d and %d are asked", network, err, asked(all), asked(others))
			}
			elsewhere := fill(t, r, "2001:db8:0:2::1", 4)
			if _, err := enter(t, r, network+"3", 0); err != nil || asked(elsewhere) != 0 {
				t.Errorf("%s: a third address: %v, and %d of another network are asked", network, err, asked(elsewhere))
			}
			if _, err := enter(t, r, network+"4", 0); err != nil || asked(elsewhere) != 0 || r.Len() != 8 {
				t.Errorf("%s: a fourth address: %v, and %d of another network are asked; %d are there", network, err, asked(elsewhere), r.Len())
			}
		})
	}
}

// TestBytesGiveWay checks that as many silent clients give way as a newcomer needs the bytes of, and none where all are not enough.
func TestBytesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Room{Most: 10, Bytes: 100, Patience: time.Second}
		var all []*guest
		for range 5 {
			g, err := enter(t, r, "10.0.0.1", 20)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, g)
		}
		time.Sleep(time.Second)
		if _, err := enter(t, r, "10.0.0.1", 101); err != ErrFull || asked(all) != 0 {
			t.Errorf("more than there are: %v, %d asked", err, asked(all))
		}
		if _, err := enter(t, r, "10.0.0.1", 41); err != nil || asked(all) != 3 {
			t.Errorf("%v, %d asked, want 3", err, asked(all))
		}
	})
}

// TestHostWithMostBytesGivesWay checks that where bytes are what there is none of, the host that has most of them gives way and not one
// with many small clients, and that each host comes to have as many (F2).
func TestHostWithMostBytesGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Room{Most: 100, Bytes: 256, Patience: 10 * time.Second}
		take := func(n int, host string, bytes uint64) (all []*guest) {
			t.Helper()
			for range n {
				g, err := enter(t, r, host, bytes)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, g)
			}
			return all
		}
		small := take(8, "10.0.0.2", 2)
		large := take(1, "10.0.0.1", 120)
		other := take(1, "10.0.0.3", 120)
		if _, err := enter(t, r, "10.0.0.1", 10); err != ErrFull || asked(small) != 0 {
			t.Errorf("a host with most of the bytes: %v, and %d small clients are asked", err, asked(small))
		}
		small = append(small, take(1, "10.0.0.2", 2)...)
		if asked(small) != 0 || asked(large) != 1 || asked(other) != 0 {
			t.Errorf("a small client: %d, %d and %d are asked, want the oldest of the large ones", asked(small), asked(large), asked(other))
		}
	})
}

// TestPlaceIsForWhoeverItWasGivenUpFor checks that newcomers of a host which has all places get none that is being given up for another
// host, however many wait for one, and that they are refused at once (F2).
func TestPlaceIsForWhoeverItWasGivenUpFor(t *testing.T) {
	for _, bytes := range []uint64{0, 10} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				r := &Room{Most: 4, Bytes: 4 * bytes, Patience: 10 * time.Second}
				var all []*guest
				for range 4 {
					g, err := enter(t, r, "10.0.0.1", bytes)
					if err != nil {
						t.Fatal(err)
					}
					g.stays = true
					all = append(all, g)
				}
				came := make(chan error, 2)
				for range 2 {
					go func() {
						_, err := r.Enter(t.Context(), netip.MustParseAddr("10.0.0.2"), bytes)
						came <- err
					}()
				}
				synctest.Wait()
				if asked(all) != 2 {
					t.Fatalf("%d are asked", asked(all))
				}
				for range 20 {
					go func() {
						began := time.Now()
						if _, err := r.Enter(t.Context(), netip.MustParseAddr("10.0.0.1"), bytes); err != ErrFull || time.Since(began) != 0 {
							t.Errorf("another of the host that has most: %v after %v", err, time.Since(began))
						}
					}()
				}
				if _, err := r.Enter(t.Context(), netip.MustParseAddr("10.0.0.2"), bytes); err != ErrFull {
					t.Errorf("more than its half: %v", err)
				}
				synctest.Wait()
				for _, g := range all {
					if g.asked {
						g.place.Leave()
					}
				}
				for range 2 {
					if err := <-came; err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// TestWhoDoesNotLeave checks that a newcomer waits for a second at most, and that what waits is bounded.
func TestWhoDoesNotLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Room{Most: 2, Patience: time.Second}
		all := fill(t, r, "10.0.0.1", 2)
		all[0].stays, all[1].stays = true, true
		time.Sleep(time.Second)
		refused := make(chan time.Duration, 10)
		for range 5 {
			began := time.Now()
			go func() {
				if _, err := r.Enter(context.Background(), netip.MustParseAddr("10.0.0.1"), 0); err != ErrFull {
					t.Error(err)
				}
				refused <- time.Since(began)
			}()
		}
		waited := 0
		for range 5 {
			switch d := <-refused; d {
			case 0:
			case soon:
				waited++
			default:
				t.Errorf("refused after %v", d)
			}
		}
		if waited != 2 || r.Len() != 2 {
			t.Errorf("%d waited, %d are there", waited, r.Len())
		}
	})
}
