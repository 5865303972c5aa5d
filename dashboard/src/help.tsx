// The keys that work here.
import { Dialog } from "./parts/dialog";
import { groups } from "./parts/keys";

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <div class="keys">
        {groups.value
          .toReversed()
          .filter((group) => group.keys().length)
          .map((group) => (
            <section key={group.name}>
              <h3>{group.name}</h3>
              <dl>
                {group.keys().map(({ key, does }) => (
                  <div key={key}>
                    <dt>
                      {key.split(" ").map((one) => (
                        <kbd key={one}>{one}</kbd>
                      ))}
                    </dt>
                    <dd>{does}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        <section>
          <h3>Commands</h3>
          <dl>
            <div>
              <dt>
                <kbd>Ctrl K</kbd>
              </dt>
              <dd>find a page, a run, an agent</dd>
            </div>
          </dl>
        </section>
      </div>
      <div class="acts">
        <span class="grow" />
        <button class="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
