package dgrdma

import "github.com/dgrdma/dgrdma/endpoint"

const (
	// MemoryService is the name of an endpoint's plain memory, unless [Config.Service]
	// says otherwise: "memory".
	MemoryService = endpoint.MemoryService
	// MaxLetter is how long a letter may be: 1 KiB.
	MaxLetter = endpoint.MaxLetter
	// MailSize is what mail takes of a service's window, from its beginning: 2 KiB.
	MailSize = endpoint.MailSize
)

// service is a Service as the engine has it.
type service struct{ Service }

// Meet implements [endpoint.Service].
func (s service) Meet(ch *endpoint.Channel) endpoint.Handler {
	h := s.Service.Meet((*Channel)(ch))
	if h == nil {
		return nil
	}
	if p, ok := h.(Placed); ok {
		return placedHandler{handler{h}, p}
	}
	return handler{h}
}

// handler is a Handler as the engine has it. On the way of data there is nothing between
// the two.
type handler struct{ Handler }

func (h handler) ours() Handler { return h.Handler }

// Event implements [endpoint.Handler].
func (h handler) Event(e endpoint.Event) { h.Handler.Event(ourEvent(e)) }

// placedHandler is one that wants to know when data arrived.
type placedHandler struct {
	handler
	told Placed
}

var _ endpoint.Placed = placedHandler{}

// Placed implements [endpoint.Placed].
func (h placedHandler) Placed(src EndpointID, m *Message) { h.told.Placed(src, m) }

// Handler returns what Meet returned.
func (ch *Channel) Handler() Handler {
	if h, ok := (*endpoint.Channel)(ch).Handler().(interface{ ours() Handler }); ok {
		return h.ours()
	}
	return nil
}

// Conn returns the connection.
func (ch *Channel) Conn() *Conn { return (*Conn)((*endpoint.Channel)(ch).Conn()) }

// Flow returns another queue for what the service posts to the peer: order and fences hold
// within one, so what belongs together is posted by the same.
func (ch *Channel) Flow() *Flow { return (*Flow)((*endpoint.Channel)(ch).Flow()) }

// Conn returns the connection.
func (f *Flow) Conn() *Conn { return (*Conn)((*endpoint.Flow)(f).Conn()) }

// Channel returns a service's channel of this connection; nil if the endpoint has no
// service of that name.
func (c *Conn) Channel(service string) *Channel {
	return (*Channel)((*endpoint.Conn)(c).Channel(service))
}
