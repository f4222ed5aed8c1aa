package rping

import (
	"errors"
	"fmt"
)

const (
	// Port is where rping listens unless it is told otherwise.
	Port = "7174"
	// DefaultSize is how many bytes rping's pings have.
	DefaultSize = 64
	// MinSize and MaxSize are rping's bounds: room for the largest number in words, and one less than its buffer of 64 KiB.
	MinSize = 26
	MaxSize = 64<<10 - 1
)

// First and last character of the data, of rping.
const (
	firstChar = 65
	lastChar  = 122
)

var (
	// ErrSize says that a ping is longer or shorter than it may be.
	ErrSize = errors.New("wrong size of a ping")
	// ErrMessage says that the peer sent something else than rping does.
	ErrMessage = errors.New("not a message of rping")
	// ErrSilent says that the peer's next word did not come in time.
	ErrSilent = errors.New("no answer")
	// ErrStranger says that a client has private data for the server, and rping's have none.
	ErrStranger = errors.New("the client is none of rping's")
)

// DataError says that a ping is not what it should be.
type DataError struct {
	// Ping is its number, from 0 on.
	Ping int
	// At is the first byte that is wrong.
	At        int
	Got, Want byte
}

func (e *DataError) Error() string {
	return fmt.Sprintf("ping %d has wrong data: byte %d is %#02x, not %#02x", e.Ping, e.At, e.Got, e.Want)
}

// Fill makes b the data of ping n.
func Fill(b []byte, n int) {
	c := byte(firstChar + n%(lastChar-firstChar+1))
	for i := copy(b, fmt.Sprintf("rdma-ping-%d: ", n)); i < len(b); i++ {
		b[i] = c
		if c++; c > lastChar {
			c = firstChar
		}
	}
	if len(b) > 0 {
		b[len(b)-1] = 0
	}
}

// compare says where got is not ping n.
func compare(n int, got, want []byte) error {
	for i := range want {
		if got[i] != want[i] {
			return &DataError{Ping: n, At: i, Got: got[i], Want: want[i]}
		}
	}
	return nil
}
