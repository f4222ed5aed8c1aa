package exercise

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

// File is an open file. An nfs3.File is one, and an os.File.
type File interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Random does what chance says to one file: it reads, writes, truncates, syncs and opens it again, and compares what it reads with a model.
type Random struct {
	// Open opens the file, in way number 0, 1 and so on. The ways differ by what lies between: a cache, as an example.
	Open []func() (File, error)
	Seed uint64
	Most int // octets that the file may have

	dice  *rand.Rand
	files []File
	model []byte
	log   []string // the last operations
}

// Run does n operations, after which the file is closed.
func (r *Random) Run(n int) (err error) {
	r.dice = rand.New(rand.NewPCG(r.Seed, 1))
	r.files = make([]File, len(r.Open))
	defer func() {
		for _, f := range r.files {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
	}()
	for i := range r.files {
		if r.files[i], err = r.Open[i](); err != nil {
			return err
		}
	}
	for i := range n {
		if err := r.step(i); err != nil {
			return fmt.Errorf("seed %d, operation %d: %w\n%q", r.Seed, i, err, r.log)
		}
	}
	for way := range r.files {
		r.note("end, way %d", way)
		if err := r.compare(r.files[way], 0, len(r.model)+1); err != nil {
			return fmt.Errorf("seed %d, at the end: %w\n%q", r.Seed, err, r.log)
		}
	}
	return nil
}

func (r *Random) note(format string, a ...any) {
	if r.log = append(r.log, fmt.Sprintf(format, a...)); len(r.log) > 20 {
		r.log = r.log[1:]
	}
}

// length returns one up to most. Short ones are as frequent as long ones.
func (r *Random) length(most int) int { return 1 + r.dice.IntN(1+r.dice.IntN(most)) }

func (r *Random) step(i int) error {
	way := r.dice.IntN(len(r.files))
	f := r.files[way]
	switch c := r.dice.IntN(100); {
	case c < 45:
		at := r.dice.IntN(len(r.model) + 2)
		n := r.length(r.Most / 4)
		r.note("read %d at %d, way %d", n, at, way)
		return r.compare(f, at, n)
	case c < 85:
		at := r.dice.IntN(min(len(r.model)+r.Most/8, r.Most-1))
		data := Pattern(i, r.length(min(r.Most/4, r.Most-at)))
		r.note("write %d at %d, way %d", len(data), at, way)
		if n, err := f.WriteAt(data, int64(at)); err != nil || n != len(data) {
			return fmt.Errorf("%d of %d written at %d: %w", n, len(data), at, err)
		}
		r.resize(max(len(r.model), at+len(data)))
		copy(r.model[at:], data)
	case c < 92:
		size := r.dice.IntN(min(len(r.model)+r.Most/8, r.Most))
		r.note("truncate to %d, way %d", size, way)
		r.resize(size)
		return f.Truncate(int64(size))
	case c < 98:
		r.note("sync, way %d", way)
		return f.Sync()
	default:
		r.note("open again, way %d", way)
		err := f.Close()
		r.files[way] = nil
		if err == nil {
			r.files[way], err = r.Open[way]()
		}
		return err
	}
	return nil
}

func (r *Random) resize(size int) {
	if size < len(r.model) {
		r.model = r.model[:size:size]
	}
	r.model = append(r.model, make([]byte, size-len(r.model))...)
}

// compare reads n octets.
func (r *Random) compare(f File, at, n int) error {
	got := make([]byte, n)
	k, err := f.ReadAt(got, int64(at))
	if err != nil && err != io.EOF {
		return err
	}
	want := r.model[min(at, len(r.model)):min(at+n, len(r.model))]
	if k != len(want) {
		return fmt.Errorf("%d octets were read at %d, not %d", k, at, len(want))
	}
	if !bytes.Equal(got[:k], want) {
		for i := range want {
			if got[i] != want[i] {
				return fmt.Errorf("the octet at %d is %#x, not %#x", at+i, got[i], want[i])
			}
		}
	}
	return nil
}

// Odd writes and reads at offsets and in lengths that are no multiples of anything, and around the sizes of pages and of calls.
func Odd(f File) error {
	r := &Random{}
	for i, at := range []int{0, 1, 3, 4095, 4097, 65535, 1<<20 - 1} {
		for j, n := range []int{1, 2, 3, 5, 511, 4095, 4096, 4097, 65537, 1<<20 - 1, 1<<20 + 1} {
			data := Pattern(100*i+j, n)
			if k, err := f.WriteAt(data, int64(at)); err != nil || k != n {
				return fmt.Errorf("%d of %d written at %d: %w", k, n, at, err)
			}
			r.resize(max(len(r.model), at+n))
			copy(r.model[at:], data)
			for _, around := range []int{0, 2} {
				if err := r.compare(f, max(at-around, 0), n+2*around); err != nil {
					return fmt.Errorf("after %d were written at %d: %w", n, at, err)
				}
			}
		}
	}
	return r.compare(f, 0, len(r.model)+4096)
}
