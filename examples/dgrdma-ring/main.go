// Ring moves a stream from one process to another by writes into its memory, without
// links: data and a flag word for each piece, in a ring of slots, and for each slot that was
// emptied a credit, written back. It is what package link does, as small as can be.
//
//	dgrdma-ring receive                prints where it is to standard error, and what comes to standard output
//	dgrdma-ring send ENDPOINT-STRING   sends standard input
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Piece k is in slot k modulo their number. The receiver's memory begins with a flag for each
// slot, which is written when the data is there: its length and one, as 0 stands for an empty
// slot. The slots follow. A piece without data is the end.
//
// The sender's memory is a credit for each slot: how often the receiver has emptied it. One
// word for all would not do: of two writes under way the earlier may arrive last.
const (
	slots    = 16
	slotSize = 64 << 10
	wordSize = 4
	data     = 4096
)

// silence is after how long who waits asks whether the other one is still there.
const silence = 5 * time.Second

func wordOf(k uint32) uint32 { return wordSize * (k % slots) }
func slotOf(k uint32) uint32 { return data + slotSize*(k%slots) }

const usage = "usage: dgrdma-ring receive | dgrdma-ring send ENDPOINT-STRING"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 1 && args[0] == "receive":
		err = receive(ctx, "udp", os.Stderr, os.Stdout)
	case len(args) == 2 && args[0] == "send":
		err = send(ctx, args[1], os.Stdin)
	case len(args) == 1 && args[0] == "-h":
		fmt.Println(usage)
	default:
		err = errors.New(usage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dgrdma-ring:", err)
		os.Exit(1)
	}
}

// send writes all that there is to read into the receiver's slots, and returns when it has it.
func send(ctx context.Context, to string, from io.Reader) error {
	memory, err := dgrdma.NewRegion(slots * wordSize)
	if err != nil {
		return err
	}
	e, err := dgrdma.Open("udp", &dgrdma.Config{Memory: memory, KeepAlive: silence})
	if err != nil {
		return err
	}
	defer e.Close()
	receiver, err := e.Dial(to)
	if err != nil {
		return err
	}
	sent := newRing()
	bytes := make([]byte, slots*slotSize) // the library's, from Post until the transaction is done
	for k := uint32(0); ; k++ {
		emptied := k / slots
		if _, err := receiver.Wait(ctx, wordOf(k), func(credit uint32) bool { return credit == emptied }); err != nil {
			return err
		}
		t, err := sent.next(k)
		if err != nil {
			return err
		}
		b := bytes[slotSize*(k%slots):][:slotSize]
		n, err := io.ReadFull(from, b)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		t.Segments = []dgrdma.Segment{{Addr: slotOf(k), Bytes: b[:n]}}
		t.Completion = dgrdma.Word(wordOf(k), uint32(n)+1) // never there before the data
		if err := sent.post(receiver, k); err != nil {
			return err
		}
		if n == 0 {
			// Who closes with less than that would end the connection while the receiver
			// has slots to empty.
			_, err := receiver.Wait(ctx, wordOf(k), func(credit uint32) bool { return credit == emptied+1 })
			return errors.Join(err, sent.wait())
		}
	}
}

// receive writes what comes, in order, to out. Where it is, it writes to where.
func receive(ctx context.Context, local string, where, out io.Writer) error {
	memory, err := dgrdma.NewRegion(data + slots*slotSize)
	if err != nil {
		return err
	}
	peers := make(chan *dgrdma.Conn, 1)
	e, err := dgrdma.Open(local, &dgrdma.Config{Memory: memory, AcceptAny: true, KeepAlive: silence, OnEvent: func(ev dgrdma.Event) {
		if ev.Kind == dgrdma.PeerUp {
			select {
			case peers <- ev.Conn:
			default: // only the first is of interest
			}
		}
	}})
	if err != nil {
		return err
	}
	defer e.Close()
	fmt.Fprintln(where, e.URL())
	var sender *dgrdma.Conn
	select {
	case sender = <-peers:
		e.AcceptAny(false) // two would write into the same slots
	case <-ctx.Done():
		return ctx.Err()
	}
	credits := newRing()
	for k := uint32(0); ; k++ {
		flag, err := sender.Wait(ctx, wordOf(k), func(flag uint32) bool { return flag != 0 })
		if err != nil {
			return err
		}
		n := flag - 1
		if n > slotSize {
			return fmt.Errorf("the sender says that a slot of %d bytes has %d", slotSize, n)
		}
		if _, err := out.Write(memory.Bytes()[slotOf(k):][:n]); err != nil {
			return err
		}
		memory.Store32(wordOf(k), 0) // before the sender may write it
		t, err := credits.next(k)
		if err != nil {
			return err
		}
		t.Completion = dgrdma.Word(wordOf(k), k/slots+1)
		t.Urgent = true // somebody waits for it
		if err := credits.post(sender, k); err != nil {
			return err
		}
		if n == 0 {
			return credits.wait()
		}
	}
}
