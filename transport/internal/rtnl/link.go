package rtnl

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Where struct ifinfomsg has its fields.
const (
	offIndex = 4
	offFlags = 8
)

// Link is an interface.
type Link struct {
	Index   int
	Address []byte // of its hardware; none: it has none
	Up      bool
}

// LinkByName returns the interface that has the name now. unix.ENODEV: none has it.
func (s *Socket) LinkByName(name string) (Link, error) { return s.describe(0, name) }

// LinkByIndex returns the interface that has the number now. unix.ENODEV: none has it.
func (s *Socket) LinkByIndex(index int) (Link, error) { return s.describe(index, "") }

func (s *Socket) describe(index int, name string) (Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fixed, attributes, err := s.link(index, name)
	if err != nil {
		return Link{}, err
	}
	return Link{
		Index:   int(binary.NativeEndian.Uint32(fixed[offIndex:])),
		Address: append([]byte(nil), attribute(attributes, unix.IFLA_ADDRESS)...),
		Up:      binary.NativeEndian.Uint32(fixed[offFlags:])&unix.IFF_UP != 0,
	}, nil
}

// link returns the attributes of an interface, by number or by name.
func (s *Socket) link(index int, name string) (fixed, attributes []byte, err error) {
	var request [unix.SizeofIfInfomsg]byte
	binary.NativeEndian.PutUint32(request[offIndex:], uint32(index))
	s.request(unix.RTM_GETLINK, request[:]...)
	if name != "" {
		padded := make([]byte, (len(name)+4)&^3)
		copy(padded, name)
		s.with(unix.IFLA_IFNAME, padded)
	}
	b, err := s.ask()
	if err != nil {
		return nil, nil, err
	}
	if len(b) < unix.SizeofIfInfomsg {
		return nil, nil, errors.New("the answer about an interface is too short")
	}
	return b[:unix.SizeofIfInfomsg], b[unix.SizeofIfInfomsg:], nil
}

func (s *Socket) index(name string) (int, error) {
	fixed, _, err := s.link(0, name)
	if err != nil {
		return 0, err
	}
	return int(binary.NativeEndian.Uint32(fixed[offIndex:])), nil
}
