package rpcrdma

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/xdr"
)

// rpcMessage is an RPC message: reduced, and whole.
type rpcMessage struct {
	head  []byte
	items []xdr.Item
	whole []byte
}

// insert returns a message with those items in it that keep says.
func insert(head []byte, items []xdr.Item, keep func(i int) bool) (b []byte) {
	at := 0
	for i, item := range items {
		b = append(b, head[at:item.At]...)
		at = item.At
		if keep(i) {
			b = appendPad(append(b, item.Data...), len(item.Data))
		}
	}
	return append(b, head[at:]...)
}

func all(int) bool { return true }

// draw makes a message of n octets apart from its items, more or less.
func (w *world) draw(xid, kind uint32, n int, items []int) (m rpcMessage) {
	m.head = wire(xid, kind)
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := 0; i+8 <= n; i += 8 {
			v := w.rng.Uint64()
			for j := range 8 {
				b[i+j] = byte(v >> (8 * j))
			}
		}
		return b
	}
	for i, length := range items {
		share := (n - len(m.head)) / (len(items) - i + 1) / wordSize * wordSize
		m.head = append(m.head, noise(max(share-wordSize, 0))...)
		m.head = append(m.head, wire(uint32(length))...)
		m.items = append(m.items, xdr.Item{At: len(m.head), Data: noise(length)})
	}
	m.head = append(m.head, noise(max(n-len(m.head), 0))...)
	m.whole = insert(m.head, m.items, all)
	return m
}

// differ says where two messages differ.
func differ(a, b []byte) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("that differ at %d", i)
		}
	}
	return "that are the beginning"
}

// returned looks at a Call that is the program's again.
func (w *world) returned(e *fakeEnd, c *Call) {
	var k *modelCall
	for _, x := range w.calls {
		if &x.call == c {
			k = x
		}
	}
	if k == nil {
		return // it was refused while it was made
	}
	if k.returned++; k.returned > 1 {
		w.fatal("%s returns twice", k.name)
	}
	if c.Err == nil {
		w.check(k)
	} else if !k.mayFail(c.Err) {
		w.fatal("%s fails: %v", k.name, c.Err)
	}
	if !c.Sent && k.delivered > 0 {
		w.fatal("%s is said not to be sent, and was carried out", k.name)
	}
	if c.Reply != nil {
		e.pool.Put(c.Reply)
	}
	k.kept = c.Kept
	if c.Kept && (c.Direct || k.cancelled == 0) {
		w.fatal("%s keeps memory of the program", k.name)
	}
	for i, b := range k.lent {
		if k.kept && i > 0 {
			break
		}
		if e.lends(b) {
			w.fatal("%s has returned (%v), and the peer may still use its memory", k.name, c.Err)
		}
		scribble(b)
	}
}

// mayFail reports whether a call may end with an error.
func (k *modelCall) mayFail(err error) bool {
	var refused *PeerError
	switch {
	case errors.Is(err, ErrLost):
		return k.w.loses
	case errors.Is(err, ErrCancelled):
		return k.cancelled > 0
	case errors.Is(err, ErrTooLong):
		return k.from.m.cfg.Side == Server || k.from.m.version == Version1
	case k.w.scarce && (errors.Is(err, ErrReply) || errors.As(err, &refused) && refused.Report.Code == CodeSystem):
		return true // parts cannot wait for a buffer
	case errors.As(err, &refused) && k.delivered == 0 && (k.from.peer.m.cfg.ORD == 0 || len(k.request.whole) > k.from.peer.m.cfg.MaxCall):
		return true
	case errors.As(err, &refused):
		return k.failed || k.short || k.from.m.cfg.Side == Server && k.from.m.version == Version1
	}
	return k.short
}

// check holds a Reply against what was replied.
func (w *world) check(k *modelCall) {
	c := &k.call
	if k.delivered == 0 {
		w.fatal("%s was not carried out, and has a Reply", k.name)
	}
	if k.failed {
		w.fatal("%s was refused, and has a Reply", k.name)
	}
	items := k.result.items
	inline := insert(k.result.head, items, func(i int) bool { return i >= len(c.Into) || c.Placed[i] < 0 })
	if !bytes.Equal(c.Message, inline) {
		w.fatal("%s has a Reply of %d octets %s, want %d", k.name, len(c.Message), differ(c.Message, inline), len(inline))
	}
	for i, b := range c.Into {
		n := max(c.Placed[i], 0)
		if c.Placed[i] >= 0 && i < len(items) && !bytes.Equal(b[:n], items[i].Data) {
			w.fatal("%s: item %d has %d octets %s, want %d", k.name, i, n, differ(b[:n], items[i].Data), len(items[i].Data))
		}
		for _, x := range b[n:] {
			if x != rubbish {
				w.fatal("%s: memory after item %d is written", k.name, i)
			}
		}
	}
}
