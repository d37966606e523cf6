import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.logging.LogConfigurator;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.mapper.MapperExtrasPlugin;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.transport.Netty4Plugin;

/** One OpenSearch node; the modules of its distribution are on the class path. */
final class SingleNode extends Node {
    private SingleNode(Environment environment) {
        super(
            environment,
            List.of(
                Netty4Plugin.class,
                CommonAnalysisPlugin.class,
                MapperExtrasPlugin.class,
                ReindexPlugin.class,
                PainlessPlugin.class
            ),
            false
        );
    }

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            Settings.EMPTY,
            Map.of("path.home", home.toString()),
            home.resolve("config"),
            () -> "forager"
        );
        LogConfigurator.configure(environment);
        Node node = new SingleNode(environment).start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node)));
        new CountDownLatch(1).await();
    }

    private static void close(Node node) {
        try {
            node.close();
        } catch (IOException error) {
            error.printStackTrace();
        }
    }
}
