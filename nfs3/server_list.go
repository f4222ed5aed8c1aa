package nfs3

import "github.com/dgrdma/dgrdma/xdr"

// dirOverhead is what a READDIR3resok and a READDIRPLUS3resok take without entries and attributes: the
// verifier, the end of the list, and eof.
const dirOverhead = 8 + 4 + 4

// mostListed is the longest resok of READDIR and READDIRPLUS, whatever the caller allows: until it is encoded, an entry takes up to ten times the memory that it has there.
// It is arbitrary: what Linux's client asks for at first.
const mostListed = 1 << 16

// info returns the octets of an entry that dircount of READDIRPLUS counts: file id, name and cookie.
func (d *DirEntry) info() int { return 8 + 4 + xdr.Padded(len(d.Name)) + 8 }

// size returns the octets that an entry takes of a READDIR3resok, or a READDIRPLUS3resok.
func (d *DirEntry) size(plus bool) int {
	n := 4 + d.info()
	if plus {
		n += 8
		if d.Attr.Present {
			n += attrSize
		}
		if d.Object.Present {
			n += 4 + xdr.Padded(len(d.Object.Handle))
		}
	}
	return n
}

func (o *operation) readDir() error {
	var a ReadDirArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	return o.reply(o.list(a.Dir, DirPosition{a.Cookie, a.Verifier}, false, MaxData, a.Count))
}

func (o *operation) readDirPlus() error {
	var a ReadDirPlusArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	return o.reply((*ReadDirPlusResult)(o.list(a.Dir, DirPosition{a.Cookie, a.Verifier}, true, a.DirCount, a.MaxCount)))
}

// list returns as many entries as fit: their resok takes at most count octets, or mostListed, and what dircount counts
// at most that, but for the first entry. If not even that fits, the client is told so.
func (o *operation) list(dir Handle, from DirPosition, plus bool, dirCount, count uint32) *ReadDirResult {
	r := &ReadDirResult{Attr: o.post(dir)}
	room, info := int(min(count, mostListed))-4-dirOverhead, int(min(dirCount, MaxData))
	if r.Attr.Present {
		room -= attrSize
	}
	full := false
	end, err := o.fs.ReadDir(o.ctx, o.cred, dir, from, plus, func(e *DirEntry) bool {
		size := e.size(plus)
		if size > room || e.info() > info && len(r.Entries) > 0 {
			full = true
			return false
		}
		room -= size
		info -= e.info()
		r.Entries = append(r.Entries, *e)
		return true
	})
	if err == nil && (room < 0 || full && len(r.Entries) == 0) {
		err = ErrTooSmall
	}
	r.Status, r.Verifier, r.EOF = o.status(err), end.Verifier, end.EOF && !full
	return r
}
