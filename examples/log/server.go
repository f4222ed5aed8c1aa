package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// A writer says greeting when it connects. The server answers with the key of its window, 16 bytes, and the
// end of the log: tail and number of records, 8 bytes each.
const greeting = "log 1"

const privateSize = verbs.KeySize + 16

// patience is how long a writer waits for the one before it to go.
const patience = 2 * time.Second

type server struct {
	region *verbs.Region
	place  chan struct{} // for one writer
	out    io.Writer
}

// serve serves a file until ctx ends.
func serve(ctx context.Context, name string, size int64, at, port string, out io.Writer) error {
	if size < first || size > math.MaxUint32 {
		return fmt.Errorf("a log of %d bytes: it has %d to %d", size, first, math.MaxUint32)
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := begin(file); err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	host, err := verbs.Open(at)
	if err != nil {
		return err
	}
	defer host.Close()
	s := &server{place: make(chan struct{}, 1), out: out}
	s.region, err = host.Domain().RegisterFile(file, 0, min(max(size, info.Size()), math.MaxUint32), rights, &verbs.RegionOptions{Algorithm: verbs.SHA256})
	if err != nil {
		return err
	}
	defer s.region.Close()
	// Writers look at the memory: it is there until the last of them is gone.
	var writers sync.WaitGroup
	defer writers.Wait()
	defer host.Close()
	e, err := scan(s.region.Bytes(), nil)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l, err := host.Listen(port)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "serving on %v, %d records\n", l, e.records)
	for {
		request, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		writers.Go(func() { s.admit(ctx, request) })
	}
}

const rights = verbs.RemoteRead | verbs.RemoteWrite | verbs.FlushPersistent | verbs.Verify

// begin makes a log of an empty file, or of one whose beginning somebody did not live to finish.
func begin(file *os.File) error {
	var is [len(mark)]byte
	if _, err := file.ReadAt(is[:], 0); err != nil && err != io.EOF {
		return err
	}
	switch string(is[:]) {
	case mark:
		return nil
	case string(make([]byte, len(mark))):
		if _, err := file.WriteAt([]byte(mark), 0); err != nil {
			return err
		}
		return file.Sync()
	}
	return fmt.Errorf("%s: %w", file.Name(), errNoLog)
}

// admit takes a writer, when there is no other, until it goes.
func (s *server) admit(ctx context.Context, request *verbs.Request) {
	if string(request.Private) != greeting {
		request.Reject(ctx, []byte("this is a log: say "+greeting))
		return
	}
	select {
	case s.place <- struct{}{}:
		defer func() { <-s.place }()
	case <-time.After(patience):
		request.Reject(ctx, []byte("another writer is at it"))
		return
	case <-ctx.Done():
		request.Reject(ctx, nil)
		return
	}
	e, err := scan(s.region.Bytes(), nil)
	if err != nil {
		fmt.Fprintln(s.out, err)
		request.Reject(ctx, []byte(err.Error()))
		return
	}
	window, err := s.region.Bind(0, s.region.Len(), rights, nil)
	if err != nil {
		fmt.Fprintln(s.out, err)
		request.Reject(ctx, nil)
		return
	}
	// The next writer is let in when nothing of this one is on its way to the memory any more.
	defer window.Invalidate()
	private := binary.BigEndian.AppendUint64(window.Key().Bytes(), uint64(e.tail))
	private = binary.BigEndian.AppendUint64(private, e.records)
	qp, err := request.Accept(ctx, &verbs.Options{Private: private, Extensions: verbs.Commit})
	if err != nil {
		fmt.Fprintln(s.out, err)
		return
	}
	<-qp.Done()
	if err := qp.Err(); !errors.Is(err, verbs.ErrPeerClosed) {
		fmt.Fprintln(s.out, err)
	}
}
