package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/nfs3"
)

var nfsLsCommand = command{
	name: "nfs ls", summary: "list a directory of a server of NFS, or what it exports", args: "ADDRESS...",
	about: `Lists directories and files of a server of NFS version 3, as ls -l does, with numbers of users
and groups. Without a path, or with one above those of its exports, it lists the exports, and
to which clients.

  dgrdmacat nfs ls rdma:10.0.0.2
  dgrdmacat nfs ls rdma:10.0.0.2/export/dir
  dgrdmacat nfs ls --json tcp:10.0.0.2/export | jq .size

` + nfsAbout,
	flags: func(fs *flag.FlagSet) action {
		o := new(nfsLsOptions)
		o.register(fs)
		fs.BoolVar(&o.json, "json", false, "print a JSON object for each entry or export")
		return func(ctx context.Context, std *stdio, args []string) error {
			all, err := o.addresses(args)
			if err != nil {
				return err
			}
			for i, at := range all {
				o.heading = ""
				if len(all) > 1 {
					o.heading = text.Plain(at.String()) + ":\n"
				}
				if i > 0 {
					o.heading = "\n" + o.heading
				}
				if err := o.list(ctx, at, std.out); err != nil {
					return err
				}
			}
			return nil
		}
	},
}

type nfsLsOptions struct {
	nfsFlags
	json    bool
	heading string // of an address that is not the only one
}

// addresses reads the arguments of a command that takes addresses only.
func (f *nfsFlags) addresses(args []string) (all []nfsAddress, err error) {
	if len(args) == 0 {
		return nil, badUsage("which? Give an ADDRESS, as in rdma:10.0.0.2/export")
	}
	for _, arg := range args {
		at, err := parseNFS(arg)
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, f.check()
}

// list prints what an address is of.
func (o *nfsLsOptions) list(ctx context.Context, at nfsAddress, w io.Writer) error {
	s, err := o.dialNFS(ctx, at)
	if err != nil {
		return err
	}
	defer s.close()
	s.closeWith(ctx, 0)
	if _, found := s.exportOf(at); !found {
		if below := s.exportsBelow(at.path); len(below) > 0 || at.path == "" {
			return o.printExports(below, w)
		}
	}
	f, err := s.mountExport(ctx)
	if err != nil {
		return err
	}
	entries, err := f.entries()
	if err != nil {
		return s.explain(ctx, at.String(), err)
	}
	return o.printEntries(entries, w)
}

// print prints what an address is of, with its heading.
func (o *nfsLsOptions) print(w io.Writer, lines func(io.Writer) error) error {
	return buffered(w, func(w io.Writer) error {
		if !o.json {
			io.WriteString(w, o.heading)
		}
		return lines(w)
	})
}

// exportsBelow returns the exports in a directory.
func (s *nfsServerAt) exportsBelow(dir string) (below []nfs3.Export) {
	for _, e := range s.exports {
		if dir == "" || within(path.Clean(e.Path), dir) {
			below = append(below, e)
		}
	}
	return below
}

// nfsExport is an export as --json has it.
type nfsExport struct {
	Export  string   `json:"export"`
	Clients []string `json:"clients"`
}

func (o *nfsLsOptions) printExports(exports []nfs3.Export, w io.Writer) error {
	return o.print(w, func(w io.Writer) error {
		for _, e := range exports {
			if o.json {
				if err := json.NewEncoder(w).Encode(nfsExport{e.Path, append([]string{}, e.Groups...)}); err != nil {
					return err
				}
				continue
			}
			to := "all clients"
			if len(e.Groups) > 0 {
				to = strings.Join(e.Groups, ", ")
			}
			fmt.Fprintf(w, "%s  to %s\n", text.Plain(e.Path), text.Plain(to))
		}
		return nil
	})
}

// nfsEntry is an entry of a directory as --json has it.
type nfsEntry struct {
	Address  string    `json:"address"`
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	Mode     string    `json:"mode"` // octal
	Links    uint32    `json:"links"`
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	Size     uint64    `json:"size"`
	Modified time.Time `json:"modified"`
	Target   string    `json:"target,omitempty"`

	attr *nfs3.Attr
}

// nfsTypes are the types of objects, and the letters that ls has for them.
var nfsTypes = map[nfs3.FileType]struct {
	name   string
	letter byte
}{
	nfs3.TypeRegular: {"file", '-'}, nfs3.TypeDirectory: {"directory", 'd'}, nfs3.TypeSymlink: {"symlink", 'l'}, nfs3.TypeFIFO: {"fifo", 'p'},
	nfs3.TypeSocket: {"socket", 's'}, nfs3.TypeChar: {"character device", 'c'}, nfs3.TypeBlock: {"block device", 'b'},
}

// entries returns what is in a directory, or a file.
func (f *nfsFiles) entries() ([]nfsEntry, error) {
	stat := f.Lstat
	if f.at.slash {
		stat = f.Stat
	}
	info, err := stat(f.name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		e, err := f.entry(f.name, info)
		e.Name = path.Base(f.at.path)
		return []nfsEntry{e}, err
	}
	found, err := f.ReadDir(f.name)
	if err != nil {
		return nil, err
	}
	entries := make([]nfsEntry, len(found))
	for i, d := range found {
		info, err := d.Info()
		if err != nil {
			return nil, err
		}
		if entries[i], err = f.entry(path.Join(f.name, d.Name()), info); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (f *nfsFiles) entry(name string, info fs.FileInfo) (e nfsEntry, err error) {
	a := info.Sys().(*nfs3.Attr)
	e = nfsEntry{
		Address: f.remote(name), Name: info.Name(), Type: nfsTypes[a.Type].name, Mode: fmt.Sprintf("%04o", a.Mode&0o7777), Links: a.Links, UID: a.UID, GID: a.GID,
		Size: a.Size, Modified: info.ModTime(), attr: a,
	}
	if a.Type == nfs3.TypeSymlink {
		e.Target, err = f.ReadLink(name)
	}
	return e, err
}

// printEntries prints entries, in columns.
func (o *nfsLsOptions) printEntries(entries []nfsEntry, w io.Writer) error {
	var rows [][]string
	widths := make([]int, 5)
	for i := range entries {
		e := &entries[i]
		size := strconv.FormatUint(e.Size, 10)
		if e.attr.Type == nfs3.TypeChar || e.attr.Type == nfs3.TypeBlock {
			size = fmt.Sprintf("%d,%d", e.attr.Major, e.attr.Minor)
		}
		row := []string{lsMode(e.attr), strconv.Itoa(int(e.Links)), strconv.Itoa(int(e.UID)), strconv.Itoa(int(e.GID)), size}
		for j, column := range row {
			widths[j] = max(widths[j], len(column))
		}
		rows = append(rows, row)
	}
	return o.print(w, func(w io.Writer) error {
		for i, row := range rows {
			e := &entries[i]
			if o.json {
				if err := json.NewEncoder(w).Encode(e); err != nil {
					return err
				}
				continue
			}
			for j, column := range row {
				fmt.Fprintf(w, "%*s ", widths[j], column)
			}
			fmt.Fprintf(w, "%s %s", e.Modified.Format("2006-01-02 15:04"), text.Plain(e.Name))
			if e.attr.Type == nfs3.TypeSymlink {
				fmt.Fprintf(w, " -> %s", text.Plain(e.Target))
			}
			fmt.Fprintln(w)
		}
		return nil
	})
}

// lsMode is type and permissions as ls has them.
func lsMode(a *nfs3.Attr) string {
	b := []byte{nfsTypes[a.Type].letter, 'r', 'w', 'x', 'r', 'w', 'x', 'r', 'w', 'x'}
	for i := range 9 {
		if a.Mode&(1<<(8-i)) == 0 {
			b[1+i] = '-'
		}
	}
	for i, special := range []struct {
		bit      uint32
		with, by byte
	}{{0o4000, 's', 'S'}, {0o2000, 's', 'S'}, {0o1000, 't', 'T'}} {
		if at := 3 * (i + 1); a.Mode&special.bit != 0 {
			if b[at] == 'x' {
				b[at] = special.with
			} else {
				b[at] = special.by
			}
		}
	}
	return string(b)
}
