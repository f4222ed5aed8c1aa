package rpcrdma

import (
	"fmt"
	"strings"
	"time"
)

// item is one of the arguments or results of a procedure: how it is called, and how it is read.
type item struct {
	name string
	read func(r *fieldReader, name string)
}

func (r *fieldReader) take(items []item) {
	for _, i := range items {
		if i.read(r, i.name); r.Err() != nil {
			return
		}
	}
}

func handle(r *fieldReader, name string) { r.word(name, octets(r.Opaque(maxHandle))) }

func path(r *fieldReader, name string) { r.name(name, r.Opaque(mostKept)) }

func u32(r *fieldReader, name string) { r.number(name, uint64(r.Uint32())) }

func u64(r *fieldReader, name string) { r.number(name, r.Uint64()) }

func flag(r *fieldReader, name string) { r.word(name, fmt.Sprint(r.Bool())) }

// bits is for numbers that are shown in hexadecimal: verifiers, and masks.
func bits(r *fieldReader, name string) { r.word(name, fmt.Sprintf("%#x", r.Uint32())) }

func verifier(r *fieldReader, name string) { r.word(name, fmt.Sprintf("0x%016x", r.Uint64())) }

func mode(r *fieldReader, name string) { r.word(name, fmt.Sprintf("%#o", r.Uint32())) }

func stamp(r *fieldReader, name string) {
	seconds, nanos := r.Uint32(), r.Uint32()
	r.word(name, time.Unix(int64(seconds), int64(nanos)).UTC().Format(time.RFC3339Nano))
}

func stable(r *fieldReader, name string) {
	r.word(name, choice([]string{"UNSTABLE", "DATA_SYNC", "FILE_SYNC"}, r.Uint32()))
}

var accesses = []string{"READ", "LOOKUP", "MODIFY", "EXTEND", "DELETE", "EXECUTE"}

// access is a mask of what may be done.
func access(r *fieldReader, name string) {
	mask := r.Uint32()
	var all []string
	for i, word := range accesses {
		if mask&(1<<i) != 0 {
			all = append(all, word)
		}
	}
	if rest := mask >> len(accesses) << len(accesses); rest != 0 || mask == 0 {
		all = append(all, fmt.Sprintf("%#x", rest))
	}
	r.word(name, strings.Join(all, "+"))
}

// fileData is the data of READ and WRITE: how long they are.
func fileData(r *fieldReader, name string) {
	if r.reduced {
		name += "_in_chunks"
	}
	r.number(name, uint64(r.Uint32()))
}

// target is that of a symbolic link, which may be in a chunk.
func target(r *fieldReader, name string) {
	if !r.reduced {
		path(r, name)
		return
	}
	n := r.Uint32()
	r.number(name+"_in_chunks", uint64(n))
	if len(r.moved) > 0 {
		r.name(name, r.moved[:min(uint64(n), uint64(len(r.moved)))])
	}
}

var fileTypes = []string{1: "file", "directory", "block device", "character device", "symbolic link", "socket", "FIFO"}

func fileType(r *fieldReader, name string) { r.word(name, choice(fileTypes, r.Uint32())) }

// attributes are an fattr3, without what says nothing of the object.
func attributes(r *fieldReader, name string) {
	r.group(name, func() {
		r.take([]item{{"type", fileType}, {"mode", mode}, {"links", u32}, {"uid", u32}, {"gid", u32}, {"size", u64}})
		r.Fixed(24) // what it takes of the disk, device, file system
		u64(r, "fileid")
		r.Fixed(8) // atime
		stamp(r, "mtime")
		r.Fixed(8) // ctime
	})
}

func postAttributes(r *fieldReader, name string) {
	if r.Bool() {
		attributes(r, name)
	}
}

// wcc are attributes before and after a change, of which those after it are shown.
func wcc(r *fieldReader, name string) {
	if r.Bool() {
		r.Fixed(24)
	}
	postAttributes(r, name)
}

func postHandle(r *fieldReader, name string) {
	if r.Bool() {
		handle(r, name)
	}
}

// set is what SETATTR and others set: only what is set.
func set(r *fieldReader, name string) {
	r.group(name, func() {
		for _, i := range []item{{"mode", mode}, {"uid", u32}, {"gid", u32}, {"size", u64}} {
			if r.Bool() {
				i.read(r, i.name)
			}
		}
		for _, name := range []string{"atime", "mtime"} {
			switch how := r.Uint32(); how {
			case 0:
			case 1:
				r.word(name, "server's")
			case 2:
				stamp(r, name)
			default:
				r.Fail("no way to set a time")
			}
		}
	})
}

// guard is the time of the last change that SETATTR wants.
func guard(r *fieldReader, name string) {
	if r.Bool() {
		stamp(r, name)
	}
}

// how is what CREATE does with a file that is there.
func how(r *fieldReader, name string) {
	n := r.Uint32()
	if r.word(name, choice([]string{"UNCHECKED", "GUARDED", "EXCLUSIVE"}, n)); n == 2 {
		verifier(r, "verifier")
		return
	}
	set(r, "set")
}

// node is what MKNOD makes.
func node(r *fieldReader, name string) {
	kind := r.Uint32()
	r.word(name, choice(fileTypes, kind))
	if kind == 3 || kind == 4 || kind == 6 || kind == 7 {
		set(r, "set")
	}
	if kind == 3 || kind == 4 {
		u32(r, "major")
		u32(r, "minor")
	}
}

// entries counts those of a directory, and says whether they are the last ones.
func entries(plus bool) func(*fieldReader, string) {
	return func(r *fieldReader, name string) {
		n := uint64(0)
		for r.Bool() {
			r.Uint64()
			r.Opaque(mostKept)
			r.Uint64()
			if plus {
				if r.Bool() {
					r.Fixed(attrSize)
				}
				if r.Bool() {
					r.Opaque(maxHandle)
				}
			}
			if r.Err() == nil {
				n++
			}
		}
		r.fields = append(r.fields, Field{Name: name, Number: n}) // as many as are here
		flag(r, "eof")
	}
}

// words is a list of numbers.
func words(r *fieldReader, name string) {
	r.group(name, func() {
		for i := range r.Count(maxGroups, 4) {
			r.number(fmt.Sprint(i), uint64(r.Uint32()))
		}
	})
}
