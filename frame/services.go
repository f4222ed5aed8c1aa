package frame

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// ServiceName is what peers of our own kind call one of the owners of an endpoint's
// memory: one to eight small letters, digits and hyphens, and zeros behind them.
type ServiceName [8]byte

// ParseServiceName reads a name.
func ParseServiceName(s string) (n ServiceName, err error) {
	if len(s) == 0 || len(s) > len(n) {
		return n, fmt.Errorf("dgrdma: service name %q: need 1 to %d small letters, digits and hyphens", s, len(n))
	}
	copy(n[:], s)
	if !n.valid() {
		return ServiceName{}, fmt.Errorf("dgrdma: service name %q: need small letters, digits and hyphens", s)
	}
	return n, nil
}

func (n ServiceName) String() string { return string(n.Append(nil)) }

// Append appends what String returns.
func (n ServiceName) Append(b []byte) []byte { return append(b, bytes.TrimRight(n[:], "\x00")...) }

// valid reports whether n is what ParseServiceName returns.
func (n ServiceName) valid() bool {
	ended := false
	for i, x := range n {
		switch {
		case x == 0:
			ended = true
		case ended, (x < 'a' || x > 'z') && (x < '0' || x > '9') && x != '-':
			return false
		}
		if i == 0 && ended {
			return false
		}
	}
	return true
}

// Service is an owner of some of an endpoint's addresses, from Base on.
type Service struct {
	Name ServiceName
	Base uint32
}

// MostServices is how many services a list names.
const MostServices = 8

// Services is what HELLO, WELCOME and CONFIRM say after their message of which services their sender
// has:
//
//	offset  size  field
//	0       1     0x53
//	1       1     their number, 0 to 8
//	2       1     how many services it knows of the receiver
//	3       1     0
//	4       12    for each: name, 8 bytes, and base, 4 bytes
//	              zeros up to ServicesSize, or an identity or a round trip at its end, see [PutIdentity] and [PutTrip]
//
// It is always as long, so that the answer to a HELLO is not longer than what
// was asked. To all others it is link padding. The zero Services has none.
//
// Services are added and never go. So a peer that knows fewer than there are has yet to
// hear of the last ones, and is told again.
type Services struct {
	list [MostServices]Service
	n    int
	// Known is how many services the sender knows of the receiver.
	Known int
}

const (
	servicesMark = 0x53
	serviceSize  = len(ServiceName{}) + 4
	servicesHead = 4
	// ServicesSize is the length of a list of services in bytes.
	ServicesSize = servicesHead + MostServices*serviceSize
)

// HasRoom reports whether there is room for another service, or for an identity: see [PutIdentity].
func (s *Services) HasRoom() bool { return s.n < MostServices }

// Add adds a service. Not ok: there are as many as can be, or one of that name.
func (s *Services) Add(x Service) (ok bool) {
	if _, known := s.Find(x.Name); known || s.n == MostServices {
		return false
	}
	s.list[s.n] = x
	s.n++
	return true
}

// All returns the services, in the order in which they were added.
func (s *Services) All() []Service { return s.list[:s.n] }

// Find returns where the service of a name begins.
func (s *Services) Find(n ServiceName) (base uint32, ok bool) {
	for i := range s.All() {
		if s.list[i].Name == n {
			return s.list[i].Base, true
		}
	}
	return 0, false
}

// Put writes s to b, which has ServicesLen bytes or more, and zeros after it, as far as ServicesSize.
func (s *Services) Put(b []byte) {
	b = b[:min(len(b), ServicesSize)]
	clear(b)
	b[0], b[1], b[2] = servicesMark, byte(s.n), byte(s.Known)
	for i, x := range s.All() {
		at := b[servicesHead+i*serviceSize:]
		copy(at, x.Name[:])
		binary.LittleEndian.PutUint32(at[len(x.Name):], x.Base)
	}
}

// Services returns what a frame of the handshake says of its sender's services. Not ok: it says
// nothing of them, or nothing that could be, or f is no such frame.
func (f *Frame) Services() (s Services, ok bool) {
	if h, ok := f.Handshake(); !ok || !h.Kind.HasServices() {
		return Services{}, false
	}
	return parseServices(f.Rest(), ServicesSize)
}

// TypeServices is the type of a message whose data is a list of services, which has no more than there are: in a session
// new services are told so.
const TypeServices = 2

// ParseServices returns the list that is the data of a message of TypeServices. Not ok: it is none.
func ParseServices(data []byte) (s Services, ok bool) {
	s, ok = parseServices(data, servicesHead)
	return s, ok && len(data) == ServicesLen(&s)
}

// ServicesLen returns the length of the list without the zeros at its end.
func ServicesLen(s *Services) int { return servicesHead + s.n*serviceSize }

func parseServices(b []byte, least int) (s Services, ok bool) {
	if len(b) < least || b[0] != servicesMark || b[1] > MostServices || b[2] > MostServices || b[3] != 0 {
		return Services{}, false
	}
	n := servicesHead + int(b[1])*serviceSize
	if len(b) < n {
		return Services{}, false
	}
	s.Known = int(b[2])
	for at := b[servicesHead:n]; len(at) > 0; at = at[serviceSize:] {
		x := Service{Name: ServiceName(at[:len(ServiceName{})]), Base: binary.LittleEndian.Uint32(at[len(ServiceName{}):])}
		if !x.Name.valid() || !s.Add(x) {
			return Services{}, false
		}
	}
	return s, true
}
