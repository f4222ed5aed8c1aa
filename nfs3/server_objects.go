package nfs3

import "cmp"

func (o *operation) getAttr() error {
	var a GetAttrArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	attr, err := o.fs.GetAttr(o.ctx, o.cred, a.Object)
	return o.reply(&GetAttrResult{o.status(err), attr})
}

func (o *operation) setAttr() error {
	var a SetAttrArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	var r ChangeResult
	err := o.writable()
	if err == nil {
		r.WCC, err = o.fs.SetAttr(o.ctx, o.cred, a.Object, &a.Set, a.Guard)
	}
	r.Status = o.status(err)
	o.complete(&r.WCC, a.Object)
	return o.reply(&r)
}

func (o *operation) lookup() error {
	var a LookupArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	found, err := o.fs.Lookup(o.ctx, o.cred, a.What.Dir, a.What.Name)
	o.served.found(found.Handle)
	return o.reply(&LookupResult{o.status(err), found.Handle, PostAttr{err == nil, found.Attr}, o.post(a.What.Dir)})
}

func (o *operation) access() error {
	var a AccessArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	granted, err := o.fs.Access(o.ctx, o.cred, a.Object, a.Access)
	if o.o.ReadOnly {
		granted &^= AccessModify | AccessExtend | AccessDelete
	}
	return o.reply(&AccessResult{o.status(err), o.post(a.Object), granted & a.Access})
}

func (o *operation) readLink() error {
	var a ReadLinkArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	target, err := o.fs.ReadLink(o.ctx, o.cred, a.Link)
	return o.reply(&ReadLinkResult{o.status(err), o.post(a.Link), []byte(target)})
}

func (o *operation) fsStat() error {
	var a FSArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	stat, err := o.fs.FSStat(o.ctx, o.cred, a.Object)
	return o.reply(&FSStatResult{o.status(err), o.post(a.Object), stat})
}

func (o *operation) fsInfo() error {
	var a FSArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	info, err := o.fs.FSInfo(o.ctx, o.cred, a.Object)
	info.complete()
	return o.reply(&FSInfoResult{o.status(err), o.post(a.Object), info})
}

func (o *operation) pathConf() error {
	var a FSArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	conf, err := o.fs.PathConf(o.ctx, o.cred, a.Object)
	conf.LinkMax, conf.NameMax = cmp.Or(conf.LinkMax, 1), cmp.Or(conf.NameMax, MaxName)
	return o.reply(&PathConfResult{o.status(err), o.post(a.Object), conf})
}
