package nfs3

import "context"

// made ends an operation that makes an object in a directory, by f.
func (o *operation) made(dir Handle, f func() (Object, WCC, error)) error {
	var r CreateResult
	var made Object
	err := o.writable()
	if err == nil {
		made, r.Dir, err = f()
	}
	if r.Status = o.status(err); err == nil {
		o.served.found(made.Handle)
		r.Object, r.Attr = PostHandle{true, made.Handle}, Post(made.Attr)
	}
	o.complete(&r.Dir, dir)
	return o.reply(&r)
}

func (o *operation) create() error {
	var a CreateArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	return o.made(a.Where.Dir, func() (Object, WCC, error) {
		return o.fs.Create(o.ctx, o.cred, a.Where.Dir, a.Where.Name, &a.How)
	})
}

func (o *operation) mkdir() error {
	var a MkdirArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	return o.made(a.Where.Dir, func() (Object, WCC, error) {
		return o.fs.Mkdir(o.ctx, o.cred, a.Where.Dir, a.Where.Name, &a.Set)
	})
}

func (o *operation) symlink() error {
	var a SymlinkArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	return o.made(a.Where.Dir, func() (Object, WCC, error) {
		target := string(a.Target)
		for i := range len(target) {
			if target[i] == 0 {
				return Object{}, WCC{}, ErrInval
			}
		}
		if target == "" {
			return Object{}, WCC{}, ErrInval
		}
		return o.fs.Symlink(o.ctx, o.cred, a.Where.Dir, a.Where.Name, target, &a.Set)
	})
}

func (o *operation) mknod() error {
	var a MknodArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	return o.made(a.Where.Dir, func() (Object, WCC, error) {
		return o.fs.Mknod(o.ctx, o.cred, a.Where.Dir, a.Where.Name, &a.What)
	})
}

// remove answers REMOVE or RMDIR.
func (o *operation) remove(f func(context.Context, *Cred, Handle, string) (WCC, error)) error {
	var a RemoveArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	var r ChangeResult
	err := o.writable()
	if err == nil {
		r.WCC, err = f(o.ctx, o.cred, a.What.Dir, a.What.Name)
	}
	r.Status = o.status(err)
	o.complete(&r.WCC, a.What.Dir)
	return o.reply(&r)
}

func (o *operation) rename() error {
	var a RenameArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	var r RenameResult
	err := o.writable()
	if err == nil {
		r.From, r.To, err = o.fs.Rename(o.ctx, o.cred, a.From.Dir, a.From.Name, a.To.Dir, a.To.Name)
	}
	r.Status = o.status(err)
	o.complete(&r.From, a.From.Dir)
	o.complete(&r.To, a.To.Dir)
	return o.reply(&r)
}

func (o *operation) link() error {
	var a LinkArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	var r LinkResult
	err := o.writable()
	if err == nil {
		r.Attr, r.Dir, err = o.fs.Link(o.ctx, o.cred, a.File, a.Link.Dir, a.Link.Name)
	}
	r.Status = o.status(err)
	if !r.Attr.Present {
		r.Attr = o.post(a.File)
	}
	o.complete(&r.Dir, a.Link.Dir)
	return o.reply(&r)
}
