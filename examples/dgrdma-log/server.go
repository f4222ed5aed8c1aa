package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// A writer says greeting when it connects. The server answers with the key of its window, 16 bytes, and the
// end of the log: tail and number of records, 8 bytes each.
const greeting = "log 1"

const privateSize = verbs.KeySize + 16

const (
	// patience is how long a writer waits for the one before it to go, if that is not silent.
	patience = 2 * time.Second
	// silence is for how long a writer may write nothing while another one waits.
	silence = 10 * time.Second
	// mostWaiting is how many writers wait at once. Arbitrary.
	mostWaiting = 64
)

type server struct {
	region  *verbs.Region
	place   chan struct{} // for one writer
	waiting atomic.Int32  // for that
	silence time.Duration
	out     io.Writer
}

// serve serves a file until ctx ends.
func serve(ctx context.Context, name string, size int64, at, port string, silence time.Duration, out io.Writer) (err error) {
	switch {
	case size < first || size > math.MaxUint32:
		return fmt.Errorf("a log of %d bytes: it has %d to %d", size, first, math.MaxUint32)
	case silence <= 0:
		return fmt.Errorf("-silence %v: need more than 0", silence)
	}
	file, made, err := openFile(name)
	if err != nil {
		return err
	}
	defer file.Close()
	serves := false
	defer func() {
		if made && !serves {
			os.Remove(name) // nothing is in it
		}
	}()
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
	s := &server{place: make(chan struct{}, 1), silence: silence, out: out}
	s.region, err = host.Domain().RegisterFile(file, 0, min(max(size, info.Size()), math.MaxUint32), rights, &verbs.RegionOptions{Algorithm: verbs.SHA256})
	if err != nil {
		return fmt.Errorf("%s cannot be a log, whose records have to be on a disk: %w", name, err)
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
	serves = true
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

// openFile opens a file, or makes it. That it is there is on the disk then, as what is in it will be.
func openFile(name string) (file *os.File, made bool, err error) {
	file, err = os.OpenFile(name, os.O_RDWR, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, false, err
	}
	if file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return nil, false, err
	}
	directory, err := os.Open(filepath.Dir(name))
	if err == nil {
		err = errors.Join(syncDirectory(directory), directory.Close())
	}
	if err != nil {
		file.Close()
		return nil, false, fmt.Errorf("bring the name of %s to the disk: %w", name, err)
	}
	return file, true, nil
}

// syncDirectory is a variable for tests.
var syncDirectory = (*os.File).Sync

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
		request.TurnAway([]byte("this is a log: say " + greeting))
		return
	}
	if s.waiting.Add(1) > mostWaiting {
		s.waiting.Add(-1)
		request.TurnAway([]byte("many writers wait already"))
		return
	}
	select {
	case s.place <- struct{}{}:
		s.waiting.Add(-1)
		defer func() { <-s.place }()
	case <-time.After(patience):
		s.waiting.Add(-1)
		request.TurnAway([]byte("another writer is at it"))
		return
	case <-ctx.Done():
		s.waiting.Add(-1)
		request.TurnAway(nil)
		return
	}
	e, err := scan(s.region.Bytes(), nil)
	if err != nil {
		fmt.Fprintln(s.out, err)
		request.TurnAway([]byte(err.Error()))
		return
	}
	window, err := s.region.Bind(0, s.region.Len(), rights, nil)
	if err != nil {
		fmt.Fprintln(s.out, err)
		request.TurnAway(nil)
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
	if err := s.watch(qp); !errors.Is(err, verbs.ErrPeerClosed) {
		fmt.Fprintln(s.out, err)
	}
}

// watch returns why a writer is gone. One that is silent gives way to one that waits, so that it does not hold the log for ever.
func (s *server) watch(qp *verbs.QueuePair) error {
	tick := time.NewTicker(min(patience, s.silence) / 8)
	defer tick.Stop()
	written, at := uint64(0), time.Now()
	for {
		select {
		case <-qp.Done():
			return qp.Err()
		case <-tick.C:
		}
		if now := qp.Stats(); now.Written != written || now.Unserved > 0 {
			written, at = now.Written, time.Now()
		}
		if silent := time.Since(at); silent > s.silence && s.waiting.Load() > 0 {
			leaving, stop := context.WithTimeout(context.Background(), patience/8)
			defer stop()
			qp.Shutdown(leaving)
			return fmt.Errorf("the writer at %v was silent for %v, and gave way to another one", qp.RemoteAddr(), silent.Round(time.Millisecond))
		}
	}
}
