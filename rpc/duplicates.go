package rpc

import (
	"hash/maphash"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// duplicates keeps replies for calls that are sent again: after a reconnect a client cannot know
// whether a call has been carried out. It is passive, and has no lock.
type duplicates struct {
	limit int // replies that are kept
	seed  maphash.Seed
	all   map[identity]*duplicate
	// Replies in the order in which the calls ended.
	oldest, newest *duplicate
	replies, bytes int
}

// identity tells calls apart: two with the same one are the same call. A client that is sent another
// call under an XID that it had before has other arguments. Programs of one host have one address: what users claim to be tells theirs apart, or else
// one that guesses an XID could have its own refusal, or success, be the reply to a call of another user.
type identity struct {
	host                             string // address of the caller, without port: a reconnect changes it
	xid, program, version, procedure uint32
	content                          uint64 // checksum of the arguments, and of who calls
}

// duplicate is a call that is in work, or has ended.
type duplicate struct {
	identity identity
	waiter   *serverCall // the same call, sent again while it is in work
	reply    []byte      // without what transports add; nil: in work
	ended    time.Time
	next     *duplicate
}

const (
	usualDuplicates = 1024
	// maxDuplicateBytes is how long all kept replies are together, and maxDuplicateReply one of them. Procedures that
	// are not idempotent have short replies.
	maxDuplicateBytes = 4 << 20
	maxDuplicateReply = 64 << 10
	// duplicatesFor is how long a reply is kept. It is longer than clients take to find that a connection is lost.
	duplicatesFor = 5 * time.Minute
)

func newDuplicates(limit int) *duplicates {
	return &duplicates{limit: limit, seed: maphash.MakeSeed(), all: make(map[identity]*duplicate)}
}

// checksum returns that of a caller and of arguments: what follows the header, with its items in place. The same
// arguments have the same checksum, whatever travelled by itself. Of credentials that this package does not know the flavor counts alone: others may be in
// them when the call comes again.
func (d *duplicates) checksum(by Auth, inline []byte, from int, items []xdr.Item) uint64 {
	var h maphash.Hash
	h.SetSeed(d.seed)
	maphash.WriteComparable(&h, by.Flavor)
	if by.Flavor == FlavorSys {
		h.Write(by.Body[sysStamp:])
	}
	for _, item := range items {
		h.Write(inline[from:item.At])
		h.Write(item.Data)
		h.Write(zeros[:xdr.Padded(len(item.Data))-len(item.Data)])
		from = item.At
	}
	h.Write(inline[from:])
	return h.Sum64()
}

// begin tells that a call has come. It returns a new entry, which is in work until end; or the reply that
// is kept; or neither if the call is in work already: then c waits for its end, and takes the place of a
// call that waited before.
func (d *duplicates) begin(id identity, c *serverCall) (entry *duplicate, reply []byte, before *serverCall) {
	if e := d.all[id]; e != nil {
		if e.reply == nil {
			before, e.waiter = e.waiter, c
			return nil, nil, before
		}
		return nil, e.reply, nil
	}
	e := &duplicate{identity: id}
	d.all[id] = e
	return e, nil, nil
}

// end tells the reply to a call. It returns the call that waits for it, or nil. The reply is not kept if
// it is too long: then the call is carried out again if it comes again.
func (d *duplicates) end(e *duplicate, reply []byte, now time.Time) (waiter *serverCall) {
	waiter, e.waiter = e.waiter, nil
	if len(reply) > maxDuplicateReply {
		delete(d.all, e.identity)
		return waiter
	}
	e.reply, e.ended = reply, now
	if d.newest == nil {
		d.oldest = e
	} else {
		d.newest.next = e
	}
	d.newest = e
	d.replies++
	d.bytes += len(reply)
	for d.replies > d.limit || d.bytes > maxDuplicateBytes {
		d.forget()
	}
	return waiter
}

// expire forgets replies that are old.
func (d *duplicates) expire(now time.Time) {
	for d.oldest != nil && now.Sub(d.oldest.ended) >= duplicatesFor {
		d.forget()
	}
}

// forget forgets the oldest reply.
func (d *duplicates) forget() {
	e := d.oldest
	d.oldest = e.next
	if d.oldest == nil {
		d.newest = nil
	}
	d.replies--
	d.bytes -= len(e.reply)
	delete(d.all, e.identity)
}
