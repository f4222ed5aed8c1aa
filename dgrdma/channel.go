package dgrdma

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/frame"
)

// Channel is what a service has of one connection: the way to the service of the same
// name at the peer. All methods may be called at the same time.
type Channel struct {
	conn    *Conn
	service *served
	handler Handler
	placed  Placed // handler, if it wants to know
	mail    mail
	view    view // of the service's window
}

// Conn returns the connection.
func (ch *Channel) Conn() *Conn {
	return ch.conn
}

// Handler returns what Meet returned.
func (ch *Channel) Handler() Handler {
	return ch.handler
}

// Base returns where the service's own window begins; the first MailSize addresses are its
// mail's.
func (ch *Channel) Base() uint32 {
	return uint32(ch.service.base)
}

// Flow returns another queue for what the service posts to the peer: order and fences hold
// within one, so what belongs together is posted by the same.
func (ch *Channel) Flow() *Flow {
	return &Flow{conn: ch.conn, name: ch.service.name}
}

// Channel returns a service's channel of this connection; nil if the endpoint has no
// service of that name.
func (c *Conn) Channel(service string) *Channel {
	for _, ch := range c.channels.all() {
		if ch.service.name.String() == service {
			return ch
		}
	}
	return nil
}

// channels are those of one connection. A list is never changed, but replaced.
type channels struct{ list atomic.Pointer[[]*Channel] }

func (x *channels) none() bool { return x.list.Load() == nil }

func (x *channels) all() []*Channel {
	if p := x.list.Load(); p != nil {
		return *p
	}
	return nil
}

// add adds a channel. Guarded by the endpoint's mu.
func (x *channels) add(ch *Channel) {
	all := append(slices.Clip(x.all()), ch)
	x.list.Store(&all)
}

// meet makes the channel of a service.
func (c *Conn) meet(s *served) *Channel {
	ch := &Channel{conn: c, service: s}
	ch.mail.out.init(ch)
	ch.view = view{(*intake)(ch), (*intake)(ch)}
	if ch.handler = s.Meet(ch); ch.handler == nil {
		panic(fmt.Sprintf("BUG: service %v meets a peer without a handler", s.name))
	}
	ch.placed, _ = ch.handler.(Placed)
	return ch
}

// owner returns whose all messages are at this moment; nil: see each.
func (r *receiving) owner() *view {
	if r.channels.none() && !r.guest.Load() {
		return &r.own
	}
	return nil
}

// noView is what a guest sees of the memory.
var noView = view{noMemory{}, nil}

// ownerOf returns the service that a message is for: the one in whose window it completes, or else
// where its data goes.
func (r *receiving) ownerOf(m *frame.Message) *view {
	at := m.Addr
	if m.Completes() {
		at = m.CompletionAddr
	}
	for _, ch := range r.channels.all() {
		if ch.service.has(at) {
			return &ch.view
		}
	}
	if r.guest.Load() {
		return &noView
	}
	return &r.own
}

// intake is a channel as memory: what is not mail is the service's.
type intake Channel

func (in *intake) ch() *Channel { return (*Channel)(in) }

// Admit implements [Memory].
func (in *intake) Admit(src frame.EndpointID, m *frame.Message) ([]byte, error) {
	s := in.service
	letter := in.ch().letterAt(m)
	switch data, word := uint64(m.Addr), uint64(m.CompletionAddr); {
	case m.Len > 0 && (data < s.base || data+uint64(m.Len) > s.end), m.Completes() && word+4 > s.end:
		return nil, fmt.Errorf("dgrdma: data at %#x, completion at %#x: not all in the window of service %v: %w", data, word, s.name, ErrBounds)
	case letter >= 0:
		return in.mail.in.admit(s.base, letter, m)
	case m.Len > 0 && data < s.base+MailSize, word < s.base+MailSize:
		return nil, errNoMail
	}
	return in.handler.Admit(src, m)
}

// Complete implements [Memory].
func (in *intake) Complete(src frame.EndpointID, m *frame.Message) {
	if letter := in.ch().letterAt(m); letter >= 0 {
		in.mail.in.came(letter, m.CompletionValue, in.handler.Letter)
		return
	}
	in.handler.Complete(src, m)
}

// Placed implements [Placed].
func (in *intake) Placed(src frame.EndpointID, m *frame.Message) {
	if letter := in.ch().letterAt(m); letter >= 0 {
		in.mail.in.place(letter, m)
	} else if in.placed != nil {
		in.placed.Placed(src, m)
	}
}
