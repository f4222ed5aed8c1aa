package dgrdma

import "fmt"

// surelyCarried is what frames over every way of IPv6 may have: 1280 bytes of packet without
// the headers of IPv6 and UDP (RFC 8200 section 5).
const surelyCarried = 1280 - 40 - 8

// unacknowledged says what a peer was waited for that is given up, and what a user may do
// about it.
func (s *sending) unacknowledged() string {
	if !s.proven {
		or := "; a peer of another kind needs its profile"
		if s.silent() {
			or = "" // givenUp says so
		}
		return "waiting for its first acknowledgement (a card has to be disabled and enabled through its control plane before" + or + ")"
	}
	buffer := s.inFlight.Longest() // of those in flight, as nothing else is kept
	longest := buffer - s.terms.headroom
	if longest <= surelyCarried || buffer <= s.carried {
		return "waiting for acknowledgements"
	}
	return fmt.Sprintf("waiting for acknowledgements, of frames of %d bytes for the first time (a way that carries less needs the option mtu)", longest)
}

// givenUp says that the peer is given up, and whether it ever was there.
func (s *sending) givenUp(op string) error {
	if s.silent() {
		return s.terms.peerError(op, errNeverAnswered)
	}
	return s.terms.peerError(op, ErrPeerDown)
}

// silent reports whether nothing was ever heard of the peer.
func (s *sending) silent() bool { return s.heard.counters.FramesReceived == 0 }

// dead returns why a peer is given up that acknowledges nothing.
func (s *sending) dead() error {
	if err := s.kind.refusal(); err != nil {
		return err
	}
	long := s.longest()
	if carried, narrowed := s.path.Narrowed(long); narrowed {
		op := fmt.Sprintf("waiting for acknowledgements of frames of %d bytes, while those of up to %d are answered (a way that carries less needs the option mtu)", long, carried)
		return s.terms.peerError(op, &NarrowError{Frame: long, Carried: carried})
	}
	return s.givenUp(s.unacknowledged())
}
