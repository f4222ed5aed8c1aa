package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// Client is a connection to a server. It may be used by many goroutines.
type Client struct {
	host  *verbs.Host
	qp    *verbs.QueuePair
	table verbs.Key
	slots int
	reads sync.Pool // of *[reach * slotSize]byte

	mu sync.Mutex // one request at a time
}

// patience is how long a server may take to answer who connects.
const patience = 3 * time.Second

// Dial connects to a server, as in "tcp:10.0.0.1:7481".
func Dial(ctx context.Context, address string) (*Client, error) {
	host, err := verbs.Open("tcp")
	if err != nil {
		return nil, err
	}
	c := &Client{host: host, reads: sync.Pool{New: func() any { return new([reach * slotSize]byte) }}}
	c.qp, err = host.Dial(ctx, address, &verbs.Options{Private: []byte(greeting), Extensions: verbs.Immediates, Timeout: patience})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no answer from the server at %s within %v: is its program stopped, or does another one listen there?", address, patience)
	}
	if err != nil {
		host.Close()
		return nil, err
	}
	private := c.qp.Private()
	if c.table, err = verbs.ParseKey(private); err == nil && len(private) < verbs.KeySize+4 {
		err = errors.New("the server does not say how many slots its table has")
	}
	if err == nil {
		c.slots = int(binary.BigEndian.Uint32(private[verbs.KeySize:]))
		if want := (uint64(c.slots) + reach - 1) * slotSize; c.slots == 0 || want != uint64(c.table.Length) {
			err = fmt.Errorf("the server's table of %d slots has %d bytes, not %d: is it another version?", c.slots, c.table.Length, want)
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error { return errors.Join(c.qp.Close(), c.host.Close()) }

// tries is after how many Reads a wrong checksum is no write of the server any more, which takes less than a microsecond.
const tries = 1000

// Get returns the value of a key, or errNotThere. The server's program makes no call for it.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	if err := checkSizes(key, nil); err != nil {
		return nil, err
	}
	at := uint32(home(key, c.slots)) * slotSize
	near := c.reads.Get().(*[reach * slotSize]byte)
	defer c.reads.Put(near)
	for range tries {
		if err := c.qp.Read(ctx, near[:], c.table, at); err != nil {
			return nil, err
		}
		value, there, ok := find(near[:], key)
		if !ok {
			continue
		}
		if !there {
			return nil, errNotThere
		}
		return bytes.Clone(value), nil
	}
	return nil, fmt.Errorf("an entry's checksum was wrong %d times: the server's memory is damaged, or its table is of another form", tries)
}

// Put sets the value of a key. When it returns nil, every Get that begins later sees it.
func (c *Client) Put(ctx context.Context, key string, value []byte) error {
	if err := checkSizes(key, value); err != nil {
		return err
	}
	return c.ask(ctx, opPut, key, value)
}

// Delete takes a key away.
func (c *Client) Delete(ctx context.Context, key string) error {
	if err := checkSizes(key, nil); err != nil {
		return err
	}
	return c.ask(ctx, opDelete, key, nil)
}

func (c *Client) ask(ctx context.Context, what byte, key string, value []byte) error {
	request := append([]byte{what, byte(len(key))}, key...)
	request = append(request, value...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.qp.PostReceive(verbs.Receive{}); err != nil {
		return err
	}
	if err := c.qp.Send(ctx, request); err != nil {
		c.qp.Abort() // the receive is posted, and its answer would be taken for another's
		return err
	}
	var done [1]verbs.Completion
	if _, err := c.qp.Received().Wait(ctx, done[:]); err != nil {
		// Whether it was done nobody will know: the answer would be taken for that of the next.
		c.qp.Abort()
		return err
	}
	if err := done[0].Err; err != nil {
		return err
	}
	if !done[0].Immediate {
		return fmt.Errorf("the server answers with a message of %d bytes in place of a status: is it another version?", done[0].Length)
	}
	switch done[0].Payload[0] {
	case statusDone:
		return nil
	case statusFull:
		return errFull
	case statusNotThere:
		return errNotThere
	}
	return fmt.Errorf("the server answers with status %d: is it another version?", done[0].Payload[0])
}
