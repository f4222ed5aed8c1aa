package rpcrdma

import (
	"errors"
	"testing"
)

// TestMalformed checks that a peer whose messages cannot be used is left after a number of them in a minute.
func TestMalformed(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		for range 3 {
			for range maxMalformed {
				s.raw([]byte{1, 2, 3})
			}
			if s.closed != nil {
				t.Fatal("the connection has ended early")
			}
			s.now = s.now.Add(malformedTime)
		}
		for range maxMalformed + 1 {
			s.raw([]byte{1, 2, 3})
		}
		if !errors.Is(s.closed, ErrProtocol) {
			t.Errorf("the connection has ended with %v", s.closed)
		}
	})
}
