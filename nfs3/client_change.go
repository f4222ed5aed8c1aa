package nfs3

import (
	"context"
	"fmt"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/xdr"
)

// make carries out a procedure that makes an object.
func (c *Client) make(ctx context.Context, cred *Cred, procedure uint32, where DirName, args xdr.Marshaler) (Object, WCC, error) {
	if err := checkName(procedure, where.Name); err != nil {
		return Object{}, WCC{}, err
	}
	var r CreateResult
	if err := c.do(ctx, cred, procedure, args, &r, nil); err != nil {
		return Object{}, r.Dir, err
	}
	o, err := c.object(ctx, cred, where.Dir, where.Name, r.Object, r.Attr)
	return o, r.Dir, err
}

// Create is the method of FS.
func (c *Client) Create(ctx context.Context, cred *Cred, dir Handle, name string, how *CreateHow) (Object, WCC, error) {
	where := DirName{dir, name}
	return c.make(ctx, cred, ProcCreate, where, &CreateArgs{where, *how})
}

// Mkdir is the method of FS.
func (c *Client) Mkdir(ctx context.Context, cred *Cred, dir Handle, name string, set *SetAttr) (Object, WCC, error) {
	where := DirName{dir, name}
	return c.make(ctx, cred, ProcMkdir, where, &MkdirArgs{where, *set})
}

// Symlink is the method of FS.
func (c *Client) Symlink(ctx context.Context, cred *Cred, dir Handle, name, target string, set *SetAttr) (Object, WCC, error) {
	where := DirName{dir, name}
	if len(target) > MaxTarget {
		return Object{}, WCC{}, fmt.Errorf("SYMLINK %.40q: %w", name, ErrNameTooLong)
	}
	return c.make(ctx, cred, ProcSymlink, where, &SymlinkArgs{where, *set, []byte(target)})
}

// Mknod is the method of FS.
func (c *Client) Mknod(ctx context.Context, cred *Cred, dir Handle, name string, node *NodeSpec) (Object, WCC, error) {
	where := DirName{dir, name}
	return c.make(ctx, cred, ProcMknod, where, &MknodArgs{where, *node})
}

// Remove is the method of FS.
func (c *Client) Remove(ctx context.Context, cred *Cred, dir Handle, name string) (WCC, error) {
	return c.remove(ctx, cred, ProcRemove, DirName{dir, name})
}

// Rmdir is the method of FS.
func (c *Client) Rmdir(ctx context.Context, cred *Cred, dir Handle, name string) (WCC, error) {
	return c.remove(ctx, cred, ProcRmdir, DirName{dir, name})
}

func (c *Client) remove(ctx context.Context, cred *Cred, procedure uint32, what DirName) (WCC, error) {
	if err := checkName(procedure, what.Name); err != nil {
		return WCC{}, err
	}
	var r ChangeResult
	err := c.do(ctx, cred, procedure, &RemoveArgs{what}, &r, nil)
	return r.WCC, err
}

// Rename is the method of FS.
func (c *Client) Rename(ctx context.Context, cred *Cred, from Handle, name string, to Handle, newName string) (WCC, WCC, error) {
	for _, name := range []string{name, newName} {
		if err := checkName(ProcRename, name); err != nil {
			return WCC{}, WCC{}, err
		}
	}
	var r RenameResult
	err := c.do(ctx, cred, ProcRename, &RenameArgs{DirName{from, name}, DirName{to, newName}}, &r, nil)
	return r.From, r.To, err
}

// Link is the method of FS.
func (c *Client) Link(ctx context.Context, cred *Cred, h, dir Handle, name string) (PostAttr, WCC, error) {
	if err := checkName(ProcLink, name); err != nil {
		return PostAttr{}, WCC{}, err
	}
	var r LinkResult
	err := c.do(ctx, cred, ProcLink, &LinkArgs{h, DirName{dir, name}}, &r, nil)
	return r.Attr, r.Dir, err
}

// ReadDir is the method of FS. It asks for what the server prefers at once, and goes on until the end.
func (c *Client) ReadDir(ctx context.Context, cred *Cred, dir Handle, from DirPosition, plus bool, each func(*DirEntry) bool) (DirEnd, error) {
	count := min(max(c.info.DirPref, 4096), mostListed)
	for {
		r := new(ReadDirResult)
		var err error
		if o := (&rpc.CallOptions{MaxResults: int(count) + 4 + postAttrSize}); plus {
			err = c.do(ctx, cred, ProcReadDirPlus, &ReadDirPlusArgs{dir, from.Cookie, from.Verifier, count, count}, (*ReadDirPlusResult)(r), o)
		} else {
			err = c.do(ctx, cred, ProcReadDir, &ReadDirArgs{dir, from.Cookie, from.Verifier, count}, r, o)
		}
		if err != nil {
			return DirEnd{}, err
		}
		if n := len(r.Entries); n > 0 && r.Entries[n-1].Cookie == from.Cookie {
			return DirEnd{}, fmt.Errorf("READDIR: the server goes on with what it has told before")
		}
		for i := range r.Entries {
			if !each(&r.Entries[i]) {
				return DirEnd{Verifier: r.Verifier}, nil
			}
			from.Cookie = r.Entries[i].Cookie
		}
		if from.Verifier = r.Verifier; r.EOF {
			return DirEnd{r.Verifier, true}, nil
		}
		if len(r.Entries) == 0 {
			return DirEnd{}, fmt.Errorf("READDIR: the server returned no entries, and no end")
		}
	}
}
