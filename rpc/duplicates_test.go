package rpc

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// TestDuplicates checks what the cache says of a call that is in work, one that has ended, and one whose reply is
// forgotten (RPC1-054).
func TestDuplicates(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := newDuplicates(2)
	id := identity{host: "10.0.0.1", xid: 1, program: 100003, version: 3, procedure: 9, content: 77}
	first, second, third := new(serverCall), new(serverCall), new(serverCall)
	e, reply, before := d.begin(id, first)
	if e == nil || reply != nil || before != nil {
		t.Fatalf("the first: %v %x %v", e, reply, before)
	}
	if e, reply, before := d.begin(id, second); e != nil || reply != nil || before != nil {
		t.Fatalf("again, in work: %v %x %v", e, reply, before)
	}
	if e, reply, before := d.begin(id, third); e != nil || reply != nil || before != second {
		t.Fatalf("once more: %v %x %p", e, reply, before)
	}
	if waiter := d.end(e, []byte("reply"), now); waiter != third {
		t.Fatalf("%p waits, want %p", waiter, third)
	}
	if e, reply, _ := d.begin(id, second); e != nil || string(reply) != "reply" {
		t.Fatalf("again, done: %v %q", e, reply)
	}
	d.expire(now.Add(duplicatesFor - 1))
	if len(d.all) != 1 {
		t.Fatal("forgotten early")
	}
	d.expire(now.Add(duplicatesFor))
	if e, _, _ := d.begin(id, second); e == nil || d.bytes != 0 || d.oldest != nil {
		t.Fatal("not forgotten")
	}
}

// TestIdentity checks that calls that differ in one thing are different calls, and that a call is the same however its item
// has travelled (RPC1-054).
func TestIdentity(t *testing.T) {
	d := newDuplicates(8)
	base := identity{"10.0.0.1", 1, 2, 3, 4, 5}
	for i, other := range []identity{{"10.0.0.2", 1, 2, 3, 4, 5}, {"10.0.0.1", 9, 2, 3, 4, 5}, {"10.0.0.1", 1, 9, 3, 4, 5}, {"10.0.0.1", 1, 2, 9, 4, 5}, {"10.0.0.1", 1, 2, 3, 9, 5}, {"10.0.0.1", 1, 2, 3, 4, 9}} {
		if i == 0 {
			d.begin(base, nil)
		}
		if e, _, _ := d.begin(other, nil); e == nil {
			t.Errorf("%+v is taken for %+v", other, base)
		}
	}
	var e xdr.Encoder
	header := words(1, 2, 3)
	e.Reset(bytes.Clone(header))
	(&data{before: 7, b: []byte("12345"), after: "tail"}).MarshalXDR(&e)
	flat := xdr.AppendFlat(nil, e.Bytes(), e.Items())
	inline, apart := d.checksum(None, flat, len(header), nil), d.checksum(None, e.Bytes(), len(header), e.Items())
	if inline != apart {
		t.Errorf("%x inline, %x by itself", inline, apart)
	}
	for i := range flat {
		flat[i]++
		if same := d.checksum(None, flat, len(header), nil) == inline; same != (i < len(header)) {
			t.Errorf("octet %d: the same checksum: %v", i, same)
		}
		flat[i]--
	}
}

// TestIdentityOfCallers checks that the same arguments of two users are two calls, and that what may differ when a call comes again does not count: the stamp of AUTH_SYS,
// and the body of a credential that is not known (RPC1-054).
func TestIdentityOfCallers(t *testing.T) {
	d := newDuplicates(8)
	user := func(change func(s *Sys)) Auth {
		s := &Sys{Stamp: 1, Machine: "pluto", UID: 2, GID: 3, GIDs: []uint32{4, 5}}
		change(s)
		return s.Auth()
	}
	one := user(func(*Sys) {})
	for name, c := range map[string]struct {
		a, b Auth
		same bool
	}{
		"none, twice":       {None, Auth{}, true},
		"a user twice":      {one, user(func(*Sys) {}), true},
		"another stamp":     {one, user(func(s *Sys) { s.Stamp = 0xffffffff }), true},
		"another machine":   {one, user(func(s *Sys) { s.Machine = "Pluto" }), false},
		"a longer name":     {one, user(func(s *Sys) { s.Machine = "pluto\x00" }), false},
		"another user":      {one, user(func(s *Sys) { s.UID++ }), false},
		"another group":     {one, user(func(s *Sys) { s.GID++ }), false},
		"another last one":  {one, user(func(s *Sys) { s.GIDs[1]++ }), false},
		"a group less":      {one, user(func(s *Sys) { s.GIDs = s.GIDs[:1] }), false},
		"a user, none":      {one, None, false},
		"an unknown flavor": {Auth{6, []byte("1234")}, Auth{6, []byte("5678")}, true},
		"unknown flavors":   {Auth{6, []byte("1234")}, Auth{7, []byte("1234")}, false},
		"none, unknown":     {None, Auth{6, nil}, false},
	} {
		arguments := words(1, 2, 3)
		if same := d.checksum(c.a, arguments, 4, nil) == d.checksum(c.b, arguments, 4, nil); same != c.same {
			t.Errorf("%s: the same call: %v", name, same)
		}
	}
}

// TestDuplicatesAreBounded checks that the cache forgets the oldest replies beyond its bounds, of number and of octets, keeps none that is
// too long, and forgets no call in work.
func TestDuplicatesAreBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := newDuplicates(100)
	inWork, _, _ := d.begin(identity{xid: 1 << 31}, nil)
	add := func(xid uint32, n int) {
		e, _, _ := d.begin(identity{xid: xid}, nil)
		d.end(e, make([]byte, n), now)
	}
	for xid := range uint32(1000) {
		add(xid, 24)
	}
	if d.replies != 100 || len(d.all) != 101 || d.bytes != 2400 || d.all[identity{xid: 999}] == nil || d.all[identity{xid: 899}] != nil {
		t.Errorf("%d replies, %d entries, %d octets", d.replies, len(d.all), d.bytes)
	}
	for xid := range uint32(100) {
		add(2000+xid, maxDuplicateReply)
	}
	if d.bytes > maxDuplicateBytes || d.replies != maxDuplicateBytes/maxDuplicateReply {
		t.Errorf("%d replies, %d octets", d.replies, d.bytes)
	}
	add(5000, maxDuplicateReply+1)
	if d.all[identity{xid: 5000}] != nil {
		t.Error("a reply that is too long is kept")
	}
	if d.end(inWork, nil, now) != nil || d.all[identity{xid: 1 << 31}] == nil {
		t.Error("the call in work is forgotten")
	}
}

// TestDuplicatesByChance checks the cache against a plain list of replies, over random calls, of which some are in work when they come again, replies of all
// lengths, and pauses (RPC1-054).
func TestDuplicatesByChance(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	type kept struct {
		id    identity
		reply []byte
		ended time.Time
	}
	for range 20 {
		limit, now := 1+dice.IntN(100), time.Unix(1e9, 0)
		d := newDuplicates(limit)
		var list []kept
		inWork, waiting := map[identity]*duplicate{}, map[identity]*serverCall{}
		for range 2000 {
			id, c := identity{host: "10.0.0.1", xid: dice.Uint32N(200)}, new(serverCall)
			e, reply, before := d.begin(id, c)
			at := slices.IndexFunc(list, func(k kept) bool { return k.id == id })
			switch {
			case inWork[id] != nil:
				if e != nil || reply != nil || before != waiting[id] {
					t.Fatalf("a call in work: %v, %d octets, %p waited, want %p", e, len(reply), before, waiting[id])
				}
				waiting[id] = c
			case at >= 0:
				if e != nil || before != nil || &reply[0] != &list[at].reply[0] {
					t.Fatalf("a call that has ended: %v, %d octets, %p waited", e, len(reply), before)
				}
			default:
				if e == nil || reply != nil || before != nil {
					t.Fatalf("a new call: %v, %d octets, %p waited", e, len(reply), before)
				}
				inWork[id] = e
			}
			for id, e := range inWork {
				if dice.IntN(4) > 0 {
					continue
				}
				n := 24 + dice.IntN(200)
				if dice.IntN(8) == 0 {
					n = maxDuplicateReply + 1 - dice.IntN(3)
				}
				reply := make([]byte, n)
				if waiter := d.end(e, reply, now); waiter != waiting[id] {
					t.Fatalf("%p waits, want %p", waiter, waiting[id])
				}
				delete(inWork, id)
				delete(waiting, id)
				if n <= maxDuplicateReply {
					list = append(list, kept{id, reply, now})
				}
				octets := func() (sum int) {
					for _, k := range list {
						sum += len(k.reply)
					}
					return sum
				}
				for len(list) > limit || octets() > maxDuplicateBytes {
					list = list[1:]
				}
				if d.replies != len(list) || d.bytes != octets() {
					t.Fatalf("%d replies of %d octets are kept, want %d of %d", d.replies, d.bytes, len(list), octets())
				}
			}
			if dice.IntN(50) == 0 {
				now = now.Add(time.Duration(dice.Int64N(int64(duplicatesFor))))
				d.expire(now)
				for len(list) > 0 && now.Sub(list[0].ended) >= duplicatesFor {
					list = list[1:]
				}
			}
			if len(d.all) != len(list)+len(inWork) {
				t.Fatalf("%d entries, want %d", len(d.all), len(list)+len(inWork))
			}
		}
	}
}
