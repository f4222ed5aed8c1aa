package rpc

import (
	"bytes"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// TestDuplicates checks what the cache says of a call that is in work, one that has ended, and one whose reply is
// forgotten (RPC1-054).
func TestDuplicates(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := newDuplicates(2)
	id := identity{host: "10.0.0.1", xid: 1, program: 100003, version: 3, procedure: 9, arguments: 77}
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
	inline, apart := d.checksum(flat, len(header), nil), d.checksum(e.Bytes(), len(header), e.Items())
	if inline != apart {
		t.Errorf("%x inline, %x by itself", inline, apart)
	}
	for i := range flat {
		flat[i]++
		if same := d.checksum(flat, len(header), nil) == inline; same != (i < len(header)) {
			t.Errorf("octet %d: the same checksum: %v", i, same)
		}
		flat[i]--
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
