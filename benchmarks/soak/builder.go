package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/interop"
)

// builder builds indexes with a stock engine.
type builder struct {
	engine *interop.Engine
	path   string
}

func newBuilder(ctx context.Context, path string) (*builder, error) {
	e, err := interop.Start(ctx, interop.PyLance14)
	if err != nil {
		return nil, err
	}
	return &builder{e, path}, nil
}

// build builds an index on the key or the value, or builds it anew. That the engine
// gives up because of others is no fault of theirs.
func (b *builder) build(ctx context.Context, n int) (bool, error) {
	column, kind := "k", interop.BTree
	if n%2 == 1 {
		column, kind = "v", interop.Bitmap
	}
	_, err := b.engine.CreateIndex(ctx, b.path, column, kind)
	if reported := (*interop.EngineError)(nil); errors.As(err, &reported) {
		return false, nil
	}
	return err == nil, err
}

// ask looks for some rows by their key and by their value, which is how the indexes
// are used.
func (b *builder) ask(ctx context.Context, live map[int64]int64, dead []int64) (string, error) {
	const most = 15
	asked := 0
	question := func(where string, want int) (string, error) {
		n, err := b.engine.Count(ctx, b.path, where)
		if err != nil || n == want {
			return "", err
		}
		return fmt.Sprintf("%s finds %d rows where %s, want %d", b.engine.Name, n, where, want), nil
	}
	for key, value := range live {
		if asked++; asked > most {
			break
		}
		for _, where := range []string{fmt.Sprintf("k = %d", key), fmt.Sprintf("v = %d", value)} {
			if wrong, err := question(where, 1); err != nil || wrong != "" {
				return wrong, err
			}
		}
	}
	for i, key := range dead {
		if i == most {
			break
		}
		if wrong, err := question(fmt.Sprintf("k = %d", key), 0); err != nil || wrong != "" {
			return wrong, err
		}
	}
	return question("", len(live))
}

func (b *builder) close() error { return b.engine.Close() }
