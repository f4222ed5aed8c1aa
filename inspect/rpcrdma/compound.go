package rpcrdma

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dgrdma/dgrdma/xdr"
)

// Procedures whose arguments are a list of operations (RFC 8881).
const (
	nfs4Compound = 1
	nfs4Write    = 38
)

// mostOperations is how many operations of a COMPOUND have names. Arbitrary: Linux sends at most 9.
const mostOperations = 16

// Compound is what a COMPOUND of NFS 4 asks for.
type Compound struct {
	Minor      uint32
	Operations []string // the first ones, as far as they can be read
	Count      int      // how many there are
}

// String lists the operations: "SEQUENCE, PUTFH, READ", and says of how many more there is no name.
func (c *Compound) String() string {
	s := strings.Join(c.Operations, ", ")
	switch more := c.Count - len(c.Operations); {
	case more <= 0:
		return s
	case s == "":
		return fmt.Sprintf("%d operations", more)
	default:
		return fmt.Sprintf("%s and %d more", s, more)
	}
}

// at names the operation with a number, counted from 1. It is empty if there is no name.
func (c *Compound) at(n uint32) string {
	if n < 1 || uint64(n) > uint64(len(c.Operations)) {
		return ""
	}
	return c.Operations[n-1]
}

// operation is one of NFS 4: what it is called, and what its arguments are, a letter for each: w a word, h 8 octets, s 16 octets (a state, a session),
// o octets after their length, b words after their number (a bitmap), a attributes (b and o), l a lock owner's choice, n what is opened and how, c what is
// created, i how a client identifies itself, r lists of calls. An operation with a question mark is the last one that is read.
type operation struct{ name, args string }

var operations4 = map[uint32]operation{
	3: {"ACCESS", "w"}, 4: {"CLOSE", "ws"}, 5: {"COMMIT", "hw"}, 6: {"CREATE", "c"}, 7: {"DELEGPURGE", "h"}, 8: {"DELEGRETURN", "s"}, 9: {"GETATTR", "b"}, 10: {"GETFH", ""},
	11: {"LINK", "o"}, 12: {"LOCK", "wwhhl"}, 13: {"LOCKT", "whhho"}, 14: {"LOCKU", "wwshh"}, 15: {"LOOKUP", "o"}, 16: {"LOOKUPP", ""}, 17: {"NVERIFY", "a"}, 18: {"OPEN", "n"},
	19: {"OPENATTR", "w"}, 20: {"OPEN_CONFIRM", "sw"}, 21: {"OPEN_DOWNGRADE", "swww"}, 22: {"PUTFH", "o"}, 23: {"PUTPUBFH", ""}, 24: {"PUTROOTFH", ""}, 25: {"READ", "shw"},
	26: {"READDIR", "hhwwb"}, 27: {"READLINK", ""}, 28: {"REMOVE", "o"}, 29: {"RENAME", "oo"}, 30: {"RENEW", "h"}, 31: {"RESTOREFH", ""}, 32: {"SAVEFH", ""}, 33: {"SECINFO", "o"},
	34: {"SETATTR", "sa"}, 35: {"SETCLIENTID", "howoow"}, 36: {"SETCLIENTID_CONFIRM", "hh"}, 37: {"VERIFY", "a"}, nfs4Write: {"WRITE", "shwo"}, 39: {"RELEASE_LOCKOWNER", "ho"},
	40: {"BACKCHANNEL_CTL", "?"}, 41: {"BIND_CONN_TO_SESSION", "sww"}, 42: {"EXCHANGE_ID", "i"}, 43: {"CREATE_SESSION", "?"}, 44: {"DESTROY_SESSION", "s"}, 45: {"FREE_STATEID", "s"},
	46: {"GET_DIR_DELEGATION", "?"}, 47: {"GETDEVICEINFO", "swwb"}, 48: {"GETDEVICELIST", "?"}, 49: {"LAYOUTCOMMIT", "?"}, 50: {"LAYOUTGET", "wwwhhhsw"}, 51: {"LAYOUTRETURN", "?"},
	52: {"SECINFO_NO_NAME", "w"}, 53: {"SEQUENCE", "swwww"}, 54: {"SET_SSV", "oo"}, 55: {"TEST_STATEID", "?"}, 56: {"WANT_DELEGATION", "?"}, 57: {"DESTROY_CLIENTID", "h"}, 58: {"RECLAIM_COMPLETE", "w"},
	59: {"ALLOCATE", "shh"}, 60: {"COPY", "?"}, 61: {"COPY_NOTIFY", "?"}, 62: {"DEALLOCATE", "shh"}, 63: {"IO_ADVISE", "shhb"}, 64: {"LAYOUTERROR", "?"}, 65: {"LAYOUTSTATS", "?"},
	66: {"OFFLOAD_CANCEL", "s"}, 67: {"OFFLOAD_STATUS", "s"}, 68: {"READ_PLUS", "shw"}, 69: {"SEEK", "shw"}, 70: {"WRITE_SAME", "?"}, 71: {"CLONE", "sshhh"}, 72: {"GETXATTR", "o"},
	73: {"SETXATTR", "woo"}, 74: {"LISTXATTRS", "hw"}, 75: {"REMOVEXATTR", "o"},
}

// callbacks4 are those of a server's CB_COMPOUND.
var callbacks4 = map[uint32]operation{
	3: {"CB_GETATTR", "ob"}, 4: {"CB_RECALL", "swo"}, 5: {"CB_LAYOUTRECALL", "?"}, 6: {"CB_NOTIFY", "?"}, 7: {"CB_PUSH_DELEG", "?"}, 8: {"CB_RECALL_ANY", "wb"},
	9: {"CB_RECALLABLE_OBJ_AVAIL", "w"}, 10: {"CB_RECALL_SLOT", "w"}, 11: {"CB_SEQUENCE", "swwwwr"}, 12: {"CB_WANTS_CANCELLED", "ww"}, 13: {"CB_NOTIFY_LOCK", "oho"},
	14: {"CB_NOTIFY_DEVICEID", "?"}, 15: {"CB_OFFLOAD", "?"},
}

// arguments reads the arguments of a COMPOUND.
type arguments struct {
	xdr.Decoder
	at      uint64   // where they begin in the whole message, and what of it is in chunks so far
	reduced []uint32 // Positions of these
	data    uint64   // octets of the longest item of an operation that is not in a chunk
}

// compound reads the operations of a Call, if it is a COMPOUND.
func (c *Call) compound() {
	if c.args == nil || c.Procedure != nfs4Compound {
		return
	}
	table, words := operations4, 0
	switch {
	case c.Program == nfs && c.ProgramVersion == 4:
	case c.Program == callback:
		table, words = callbacks4, 1 // the identity of the callback
	default:
		return
	}
	a := &arguments{at: uint64(c.argsAt), reduced: c.positions}
	a.Reset(c.args, nil)
	a.opaque() // a tag
	k := &Compound{Minor: a.Uint32()}
	for range words {
		a.Uint32()
	}
	n := a.Uint32()
	if a.Err() != nil || n == 0 || n > mostKept/4 {
		return
	}
	k.Count = int(n)
	for range min(k.Count, mostOperations) {
		code := a.Uint32()
		o, ok := table[code]
		if a.Err() != nil || !ok {
			break
		}
		k.Operations = append(k.Operations, o.name)
		a.data = 0
		whole := a.skip(o.args)
		if code == nfs4Write && c.Program == nfs {
			c.inline4 = a.data
		}
		if !whole {
			break
		}
	}
	c.Compound = k
}

// skip passes over the arguments of an operation. It reports whether they were all there.
func (a *arguments) skip(args string) bool {
	for _, what := range args {
		switch what {
		case 'w':
			a.Uint32()
		case 'h':
			a.Uint64()
		case 's':
			a.Fixed(16)
		case 'o':
			a.opaque()
		case 'b':
			a.words()
		case 'a':
			a.words()
			a.opaque()
		case 'l':
			if a.Uint32() != 0 {
				a.skip("wswho") // the lock is the first one of its owner
			} else {
				a.skip("sw")
			}
		case 'n':
			a.open()
		case 'c':
			switch a.Uint32() {
			case 3, 4: // devices
				a.skip("ww")
			case 5: // a symbolic link
				a.opaque()
			}
			a.skip("oa")
		case 'i':
			if a.skip("how"); a.Uint32() != 0 {
				return false // keys that protect the state
			}
			for range a.count(12) {
				a.skip("oohw")
			}
		case 'r':
			for range a.count(20) {
				a.Fixed(16)
				a.Fixed(8 * a.count(8))
			}
		default:
			return false
		}
		if a.Err() != nil {
			return false
		}
	}
	return true
}

// open passes over the arguments of OPEN.
func (a *arguments) open() {
	a.skip("wwwho")
	if a.Uint32() == 1 { // create
		switch a.Uint32() {
		case 0, 1:
			a.skip("a")
		case 2:
			a.skip("h")
		case 3:
			a.skip("ha")
		default:
			a.Fail("no way to create")
		}
	}
	switch a.Uint32() { // what is claimed
	case 0, 3:
		a.skip("o")
	case 1:
		a.skip("w")
	case 2:
		a.skip("so")
	case 4, 6:
	case 5:
		a.skip("s")
	default:
		a.Fail("no claim")
	}
}

// count takes a number of elements, of which each has so many octets at least.
func (a *arguments) count(size int) int { return a.Count(mostKept, size) }

func (a *arguments) words() { a.Fixed(4 * a.count(4)) }

// opaque passes over octets after their length. Those that are in a chunk are not in the message, nor is their padding.
func (a *arguments) opaque() {
	n := uint64(a.Uint32())
	if a.Err() != nil {
		return
	}
	if at := a.at + uint64(a.Offset()); at < 1<<32 && n > 0 && slices.Contains(a.reduced, uint32(at)) {
		a.at += (n + 3) &^ 3
		return
	}
	if a.data = max(a.data, n); n > mostKept {
		a.Fail("it is not all here")
		return
	}
	a.Fixed(int(n))
}
