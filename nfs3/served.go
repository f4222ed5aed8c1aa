package nfs3

import (
	"time"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/xdr"
)

// Served is a call of NFS or MOUNT that a [Server] has carried out.
type Served struct {
	// Call says which procedure it was of, and who called.
	Call *rpc.Call
	// Cred is for whom it was done. nil: it was of MOUNT, or the credential was refused.
	Cred *Cred
	// Handle is the first one of the arguments: that of a file, or of the directory in which Name is.
	Handle Handle
	// Name is that of the arguments, or the path that MOUNT was asked for. "": they have none.
	Name string
	// ToDir and To are the second directory and name, of RENAME and LINK. To is also the target of a link that SYMLINK makes.
	ToDir Handle
	To    string
	// Found is the object that was found or made, or the root that was mounted.
	Found Handle
	// Offset and Count are those of READ and WRITE; Count is how much was read or written.
	Offset uint64
	Count  int
	// Status is what the client was told.
	Status Status
	// Err says why the call has no results of NFS: its arguments could not be decoded, or its credential was refused.
	Err error
	// Took is how long it was in work.
	Took time.Duration
}

// take notes what the arguments are.
func (s *Served) take(args xdr.Unmarshaler) {
	switch a := args.(type) {
	case *GetAttrArgs:
		s.Handle = a.Object
	case *SetAttrArgs:
		s.Handle = a.Object
	case *LookupArgs:
		s.Handle, s.Name = a.What.Dir, a.What.Name
	case *AccessArgs:
		s.Handle = a.Object
	case *ReadLinkArgs:
		s.Handle = a.Link
	case *ReadArgs:
		s.Handle, s.Offset = a.File, a.Offset
	case *WriteArgs:
		s.Handle, s.Offset = a.File, a.Offset
	case *CreateArgs:
		s.Handle, s.Name = a.Where.Dir, a.Where.Name
	case *MkdirArgs:
		s.Handle, s.Name = a.Where.Dir, a.Where.Name
	case *SymlinkArgs:
		s.Handle, s.Name, s.To = a.Where.Dir, a.Where.Name, string(a.Target)
	case *MknodArgs:
		s.Handle, s.Name = a.Where.Dir, a.Where.Name
	case *RemoveArgs:
		s.Handle, s.Name = a.What.Dir, a.What.Name
	case *RenameArgs:
		s.Handle, s.Name, s.ToDir, s.To = a.From.Dir, a.From.Name, a.To.Dir, a.To.Name
	case *LinkArgs:
		s.Handle, s.ToDir, s.To = a.File, a.Link.Dir, a.Link.Name
	case *ReadDirArgs:
		s.Handle = a.Dir
	case *ReadDirPlusArgs:
		s.Handle = a.Dir
	case *FSArgs:
		s.Handle = a.Object
	case *CommitArgs:
		s.Handle = a.File
	}
}

// found notes what was found or made. Results are not looked at by their types, as arguments are: then they would be taken from the heap.
func (s *Served) found(h Handle) {
	if s != nil {
		s.Found = h
	}
}

// moved notes how much was read or written.
func (s *Served) moved(n int) {
	if s != nil {
		s.Count = n
	}
}
