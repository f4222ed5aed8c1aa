package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// shared is memory of several processes, which outlives each of them.
type shared struct {
	file *os.File
	mem  []byte
}

// newShared makes zeroed memory. What was never written takes no room.
func newShared(name string, size int) (*shared, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make shared memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(int64(size)); err != nil {
		f.Close()
		return nil, fmt.Errorf("make shared memory of %d bytes: %w", size, err)
	}
	return mapShared(f, size)
}

func mapShared(f *os.File, size int) (*shared, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("map shared memory: %w", err)
	}
	return &shared{f, mem}, nil
}

func (s *shared) close() {
	unix.Munmap(s.mem)
	s.file.Close()
}

// instant is a time that all processes of the machine agree on.
type instant int64

func now() instant {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // never fails
	return instant(t.Nano())
}

func (t instant) sub(u instant) time.Duration { return time.Duration(t - u) }

// kind says what a record tells.
type kind uint8

const (
	isReady     kind = 1 + iota // the life has an endpoint
	isPosted                    // a transaction is about to be posted, for an era
	isDone                      // a transaction was reported done
	isFailed                    // it was reported failed
	isWithdrawn                 // it was not posted after all
	isBegun                     // the first bytes of a transaction of the peer's were placed
	isComplete                  // its completion word was written
	isWrong                     // what this process saw should not have happened
	isDialed                    // a link was made, or accepted
	isFlushed                   // so many messages of a link were reported to have arrived
	isReceived                  // a message of a link was received
	isOver                      // of a link all was received that can be
)

// record is what a process says of itself. What the numbers are says the kind.
type record struct {
	kind   kind
	code   fault
	life   uint16 // of the transaction or the link: that of who began it
	number uint32
	extra  uint32 // the era of a transaction, and its slot
	t      instant
}

// journal is a list of records that survives who writes it, up to the last one that was written whole.
type journal struct {
	mu   sync.Mutex
	room *dgrdma.Region
	at   uint32
}

const (
	recordSize  = 24
	journalSize = 1 << 23
)

func newJournal(mem []byte) (*journal, error) {
	room, err := dgrdma.RegionOver(mem)
	return &journal{room: room}, err
}

// full reports which part of the journal is used.
func (j *journal) full() float64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return float64(j.at) / journalSize
}

func (j *journal) write(r record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.at+recordSize > journalSize {
		panic("the journal is full")
	}
	b := j.room.Bytes()[j.at:]
	binary.LittleEndian.PutUint32(b[4:], r.number)
	binary.LittleEndian.PutUint32(b[8:], r.extra)
	binary.LittleEndian.PutUint64(b[16:], uint64(now()))
	j.room.Store32(j.at, uint32(r.kind)<<24|uint32(r.code)<<16|uint32(r.life))
	j.at += recordSize
}

// read returns the next record, if it is there.
func (j *journal) read() (r record, ok bool) {
	if j.at+recordSize > journalSize {
		return r, false
	}
	head := j.room.Load32(j.at)
	if head == 0 {
		return r, false
	}
	b := j.room.Bytes()[j.at:]
	j.at += recordSize
	return record{
		kind: kind(head >> 24), code: fault(head >> 16), life: uint16(head),
		number: binary.LittleEndian.Uint32(b[4:]), extra: binary.LittleEndian.Uint32(b[8:]),
		t: instant(binary.LittleEndian.Uint64(b[16:])),
	}, true
}

// board is what the two sides and who starts them tell each other at any time: where the sides are, and which
// processes they are, and when they kill themselves or each other.
type board struct{ *dgrdma.Region }

const (
	boardSize = 4096
	boardSide = 1024
	boardURL  = 16 // behind the process id, the length of the string, and the trigger
)

func newBoard(mem []byte) (board, error) {
	r, err := dgrdma.RegionOver(mem)
	return board{r}, err
}

func (b board) pid(side int) int             { return int(b.Load32(uint32(side * boardSide))) }
func (b board) setPid(side int, pid int)     { b.Store32(uint32(side*boardSide), uint32(pid)) }
func (b board) armed(side int) uint32        { return b.Load32(uint32(side*boardSide + 8)) }
func (b board) arm(side int, word uint32)    { b.Store32(uint32(side*boardSide+8), word) }
func (b board) length(side int) uint32       { return b.Load32(uint32(side*boardSide + 4)) }
func (b board) at(side int, n uint32) []byte { return b.Bytes()[side*boardSide+boardURL:][:n] }

// url returns the complete endpoint string of a side, empty as long as it never had one.
func (b board) url(side int) string { return string(b.at(side, b.length(side))) }

// setURL is called in each life of a side, and says the same each time.
func (b board) setURL(side int, url string) {
	copy(b.at(side, uint32(len(url))), url)
	b.Store32(uint32(side*boardSide+4), uint32(len(url)))
}
