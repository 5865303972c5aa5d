// Reading from the server: what is there, what went wrong, and again when an event says that it changed.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../api";
import { listen, onOpened } from "../stream";
import type { Event } from "../shapes";

export interface Loaded<T> {
  data: T | undefined;
  problem: ApiError | undefined;
  reload: () => void;
}

const TOGETHER = 250; // milliseconds in which several events cause one read

/** Read a path, and again after an event that `changes` it. A null path reads nothing. */
export function useLoad<T>(path: string | null, changes?: (event: Event) => boolean): Loaded<T> {
  const [state, setState] = useState<{ path: string | null; data?: T; problem?: ApiError }>({ path: null });
  const asked = useRef(0);
  const concerns = useRef(changes);
  concerns.current = changes;

  const reload = useCallback(() => {
    if (path === null) return;
    const mine = ++asked.current;
    call<T>("GET", path).then(
      (data) => mine === asked.current && setState({ path, data }),
      (error: unknown) => {
        if (mine !== asked.current) return;
        const problem = error instanceof ApiError ? error : new ApiError(0, "", String(error));
        setState((old) => (old.path === path && old.data !== undefined ? { ...old, problem } : { path, problem }));
      },
    );
  }, [path]);

  useEffect(() => {
    reload();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = () => (timer ??= setTimeout(() => ((timer = undefined), reload()), TOGETHER));
    const stops = [listen((events) => events.some((one) => concerns.current?.(one)) && soon()), onOpened(soon)];
    return () => {
      clearTimeout(timer);
      for (const stop of stops) stop();
      asked.current++;
    };
  }, [reload]);

  const fits = state.path === path;
  return { data: fits ? state.data : undefined, problem: fits ? state.problem : undefined, reload };
}
