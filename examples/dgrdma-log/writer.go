package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/verbs"
)

// Writer appends to the log of a server. One goroutine at a time may use it.
type Writer struct {
	host   *verbs.Host
	qp     *verbs.QueuePair
	file   verbs.Key
	end    end
	verify bool
	buf    []byte
	done   [1]verbs.Completion
}

var (
	errFull    = errors.New("the log is full: serve it with a larger -size")
	errTooLong = fmt.Errorf("it is longer than the %d bytes that a record has: cut it", maxData)
)

// Dial connects to a server, as in "tcp:10.0.0.1:7483".
func Dial(ctx context.Context, address string, verify bool) (*Writer, error) {
	host, err := verbs.Open("tcp")
	if err != nil {
		return nil, err
	}
	w := &Writer{host: host, verify: verify, buf: make([]byte, room(maxData))}
	if w.qp, err = host.Dial(ctx, address, &verbs.Options{Private: []byte(greeting), Extensions: verbs.Commit}); err != nil {
		host.Close()
		return nil, err
	}
	private := w.qp.Private()
	if w.file, err = verbs.ParseKey(private); err == nil && len(private) < privateSize {
		err = errors.New("the server does not say where its log ends")
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	w.end.tail = int(binary.BigEndian.Uint64(private[verbs.KeySize:]))
	w.end.records = binary.BigEndian.Uint64(private[verbs.KeySize+8:])
	return w, nil
}

// Close ends the connection.
func (w *Writer) Close() error { return errors.Join(w.qp.Close(), w.host.Close()) }

// Append appends a record, and returns its number when it is on the server's disk. After an error it may be there or not,
// and the writer is of no use any more, unless it was too long or the log is full.
func (w *Writer) Append(ctx context.Context, data []byte) (number uint64, err error) {
	if len(data) > maxData {
		return 0, errTooLong
	}
	next := end{tail: w.end.tail + room(len(data)), records: w.end.records + 1}
	if next.tail > int(w.file.Length) {
		return 0, errFull
	}
	at, err := w.file.Part(uint32(w.end.tail), uint32(room(len(data))))
	if err != nil {
		return 0, err
	}
	tail, err := w.file.Part(tailAt, 8)
	if err != nil {
		return 0, err
	}
	record := w.buf[:putRecord(w.buf, next.records, data)]
	list := make([]verbs.Work, 0, 5)
	list = append(list,
		verbs.Work{Op: verbs.OpWrite, STag: at.STag, TO: at.Offset, Data: record, Silent: true},
		verbs.Work{Op: verbs.OpFlush, STag: at.STag, TO: at.Offset, Length: at.Length, Persistent: true, Silent: true},
	)
	if w.verify {
		hash := sha256.Sum256(record)
		list = append(list, verbs.Work{Op: verbs.OpVerify, STag: at.STag, TO: at.Offset, Length: at.Length, Hash: hash[:], Silent: true})
	}
	// The Atomic Write is carried out when all before it has succeeded.
	list = append(list,
		verbs.Work{Op: verbs.OpAtomicWrite, STag: tail.STag, TO: tail.Offset, Payload: [8]byte(binary.BigEndian.AppendUint64(nil, uint64(next.tail))), Silent: true},
		verbs.Work{Op: verbs.OpFlush, STag: tail.STag, TO: tail.Offset, Length: 8, Persistent: true},
	)
	if _, err := w.qp.PostList(list); err != nil {
		return 0, gone(err)
	}
	// Of those that are silent, the first that fails completes, too.
	if _, err := w.qp.Completions().Wait(ctx, w.done[:]); err != nil {
		w.qp.Abort()
		return 0, err
	}
	if err := w.done[0].Err; err != nil {
		return 0, gone(err)
	}
	w.end = next
	return next.records, nil
}

// gone says why a server may have closed the connection.
func gone(err error) error {
	if errors.Is(err, verbs.ErrPeerClosed) {
		return fmt.Errorf("%w: it has ended, or this writer was silent and another one came", err)
	}
	return err
}
